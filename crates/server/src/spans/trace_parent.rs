//! The trace that a client's request belongs to, as the `traceparent` header of W3C Trace Context says it.

/// Where a request stands in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceParent {
    /// Of the trace.
    pub(crate) trace: u128,
    /// Of the span that the request was sent from.
    pub(crate) span: u64,
    /// The client records its part.
    pub(crate) is_sampled: bool,
}

impl TraceParent {
    /// The name of the header.
    pub(crate) const HEADER: &'static str = "traceparent";

    /// Reads the header's value; what is not understood is as if it were not there. Versions to come may add fields.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut fields = text.split('-');
        let mut field = |digits: usize| {
            let hex = fields.next().filter(|field| field.len() == digits)?;
            let is_hex = hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            is_hex.then(|| u128::from_str_radix(hex, 16).ok()).flatten()
        };
        let (version, trace, span, flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
        let is_known = version == 0 && fields.next().is_none();
        let is_later = (1..0xff).contains(&version);
        let is_valid = trace != 0 && span != 0 && (is_known || is_later);
        is_valid.then_some(Self { trace, span: span as u64, is_sampled: flags & 1 == 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_a_request_is_read() {
        let text = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let parent = TraceParent::parse(text).unwrap();
        assert_eq!(parent.trace, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!((parent.span, parent.is_sampled), (0xb7ad_6b71_6920_3331, true));
        let later = b"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more";
        assert!(!TraceParent::parse(later).unwrap().is_sampled);
    }

    #[test]
    fn what_is_not_understood_is_none() {
        for text in [
            "",
            "00",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceParent::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(TraceParent::parse(b"\xff\xfe"), None);
    }
}
