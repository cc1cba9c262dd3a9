//! How calls end: the codes of gRPC by their names, and which of them are refusals.

use hyper::HeaderMap;

use crate::reply::{Rejection, Reply};

/// In the order of their numbers.
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Those that say that the server has too much to do, or too little time.
const REFUSALS: [&str; 3] = ["DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "UNAVAILABLE"];

/// A call that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    name: &'static str,
    message: String,
}

impl Status {
    /// What headers or trailers say; `None` where the call succeeded or they say nothing.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let code = headers.get("grpc-status")?.to_str().unwrap_or_default();
        let code = code.parse::<usize>().ok();
        let name = code.and_then(|code| NAMES.get(code)).copied().unwrap_or("UNKNOWN");
        let message = headers
            .get("grpc-message")
            .map_or(String::new(), |message| unescaped(message.as_bytes()));
        (name != "OK").then_some(Self { name, message })
    }

    pub(super) fn into_rejection(self) -> Rejection {
        Rejection { reason: self.name.to_string(), message: self.message }
    }

    pub(super) fn into_reply(self) -> Reply<'static> {
        match REFUSALS.contains(&self.name) {
            true => Reply::Refused(self.into_rejection()),
            false => Reply::Failed(self.into_rejection()),
        }
    }
}

/// Messages have bytes that are not plain text written as `%` and two digits.
fn unescaped(message: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(message.len());
    let mut rest = message;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped.filter(|_| byte == b'%') {
            Some(escaped) => {
                bytes.push(escaped);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(status: &str, message: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", status.parse().unwrap());
        headers.insert("grpc-message", message.parse().unwrap());
        headers
    }

    #[test]
    fn codes_are_refusals_or_failures() {
        assert_eq!(Status::of(&headers("0", "")), None);
        assert_eq!(Status::of(&HeaderMap::new()), None);
        for (code, is_refusal) in
            [("8", true), ("4", true), ("14", true), ("3", false), ("x", false), ("99", false)]
        {
            let reply = Status::of(&headers(code, "a%20b%")).unwrap().into_reply();
            assert_eq!(matches!(reply, Reply::Refused(_)), is_refusal, "{code}");
            let (Reply::Refused(why) | Reply::Failed(why)) = reply else { panic!("{reply:?}") };
            assert_eq!(why.message, "a b%");
        }
    }

    proptest! {
        #[test]
        fn any_message_is_read(message in prop::collection::vec(any::<u8>(), 0..50)) {
            let _ = unescaped(&message);
        }
    }
}
