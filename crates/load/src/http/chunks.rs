//! Bodies that come in chunks.

use super::{ExchangeError, MAX_ANSWER_BYTES};

/// What was read of a chunked body so far.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// How much of the encoded body was read.
    position: usize,
}

impl Chunks {
    /// Reads on in all of the encoded body that has come, and puts what the chunks hold behind each other. True where the
    /// body has ended.
    pub(super) fn advance(
        &mut self,
        encoded: &[u8],
        body: &mut Vec<u8>,
    ) -> Result<bool, ExchangeError> {
        let malformed = || ExchangeError::Malformed("the chunks of the answer are broken".into());
        loop {
            let rest = &encoded[self.position..];
            let (start, size) = match httparse::parse_chunk_size(rest) {
                Ok(httparse::Status::Complete((start, size))) => (start, size),
                Ok(httparse::Status::Partial) => return Ok(false),
                Err(_) => return Err(malformed()),
            };
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            if size > MAX_ANSWER_BYTES - body.len().min(MAX_ANSWER_BYTES) {
                return Err(ExchangeError::TooLong);
            }
            let Some(chunk) = rest.get(start..start + size + 2) else { return Ok(false) };
            let (data, end) = chunk.split_at(size);
            // Trailers after the last chunk are not asked for.
            if end != b"\r\n" {
                return Err(malformed());
            }
            body.extend_from_slice(data);
            self.position += start + size + 2;
            if size == 0 {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_however_they_come() {
        let encoded = b"4\r\nweft\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n";
        for step in 1..encoded.len() {
            let (mut chunks, mut body, mut end) = (Chunks::default(), Vec::new(), 0);
            while end < encoded.len() {
                end = (end + step).min(encoded.len());
                let is_done = chunks.advance(&encoded[..end], &mut body).unwrap();
                assert_eq!(is_done, end == encoded.len(), "step {step}, {end}");
            }
            assert_eq!(body, b"weft0123456789");
        }
    }

    #[test]
    fn broken_chunks_are_refused() {
        let advance = |encoded: &[u8]| Chunks::default().advance(encoded, &mut Vec::new());
        assert!(matches!(advance(b"4\r\nweftXX"), Err(ExchangeError::Malformed(_))));
        assert!(matches!(advance(b"zz\r\n"), Err(ExchangeError::Malformed(_))));
        assert!(matches!(advance(b"ffffffffffffff\r\n"), Err(ExchangeError::TooLong)));
    }
}
