//! Bodies that are compressed: what clients send, and what they would like to get.

use std::io::{self, Read, Write};

use ::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use ::http::{HeaderMap, HeaderValue};
use bytes::Bytes;
use flate2::Compression;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use weft_protocol::ProtocolError;

use crate::error::ServeError;

/// What is shorter than this is not worth to be compressed.
const SHORTEST_BYTES: usize = 1024;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Gzip,
    Deflate,
}

impl Encoding {
    pub(super) fn name(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        })
    }

    fn of(name: &str) -> Option<Self> {
        match name.trim() {
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            _ => None,
        }
    }

    /// The body that was compressed; refused where it is longer than the limit.
    pub(super) fn decompress(self, body: &Bytes, limit_bytes: usize) -> Result<Bytes, ServeError> {
        let reader: Box<dyn Read + '_> = match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(&body[..])),
            Self::Deflate => Box::new(ZlibDecoder::new(&body[..])),
        };
        let mut whole = Vec::new();
        let read = reader.take(limit_bytes as u64 + 1).read_to_end(&mut whole);
        let broken = |error| ProtocolError::Malformed(format!("the body is not {self:?}: {error}"));
        read.map_err(broken)?;
        if whole.len() > limit_bytes {
            return Err(ServeError::BodyTooLarge { limit_bytes });
        }
        Ok(whole.into())
    }

    /// A body, compressed.
    pub(super) fn compress(self, body: &Bytes) -> io::Result<Bytes> {
        let compressed = match self {
            Self::Gzip => {
                let mut writer = GzEncoder::new(Vec::new(), Compression::fast());
                writer.write_all(body)?;
                writer.finish()?
            }
            Self::Deflate => {
                let mut writer = ZlibEncoder::new(Vec::new(), Compression::fast());
                writer.write_all(body)?;
                writer.finish()?
            }
        };
        Ok(compressed.into())
    }
}

/// How the body of a request is compressed, if it is.
pub(super) fn of_request(headers: &HeaderMap) -> Result<Option<Encoding>, ServeError> {
    let Some(value) = headers.get(CONTENT_ENCODING) else { return Ok(None) };
    match value.to_str().map(str::trim) {
        Ok("" | "identity") => Ok(None),
        Ok(name) => Encoding::of(name)
            .map(Some)
            .ok_or_else(|| ServeError::UnknownEncoding(name.to_string())),
        Err(_) => Err(ServeError::UnknownEncoding("?".into())),
    }
}

/// How an answer of some length is to be compressed, if at all: the first that the client names and that is known here.
pub(super) fn of_answer(headers: &HeaderMap, length: usize) -> Option<Encoding> {
    if length < SHORTEST_BYTES {
        return None;
    }
    let accepted = headers.get(ACCEPT_ENCODING)?.to_str().ok()?;
    accepted.split(',').find_map(|offer| {
        let (name, quality) = offer.split_once(';').unwrap_or((offer, ""));
        let is_unwanted = matches!(quality.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        Encoding::of(name).filter(|_| !is_unwanted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: ::http::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn what_is_compressed_comes_back() {
        let body = Bytes::from(b"weft ".repeat(1000));
        for encoding in [Encoding::Gzip, Encoding::Deflate] {
            let compressed = encoding.compress(&body).unwrap();
            assert!(compressed.len() < body.len() / 10);
            assert_eq!(encoding.decompress(&compressed, 5000).unwrap(), body);
            let bomb = encoding.decompress(&compressed, 4999);
            assert!(matches!(bomb, Err(ServeError::BodyTooLarge { limit_bytes: 4999 })));
            let cut = compressed.slice(..compressed.len() / 2);
            assert!(matches!(encoding.decompress(&cut, 5000), Err(ServeError::Protocol(_))));
        }
        assert!(Encoding::Gzip.decompress(&body, 5000).is_err());
    }

    #[test]
    fn clients_choose() {
        let asked = |value| of_answer(&headers(ACCEPT_ENCODING, value), 5000);
        assert_eq!(asked("deflate, gzip"), Some(Encoding::Deflate));
        assert_eq!(asked("br, gzip;q=0.5"), Some(Encoding::Gzip));
        assert_eq!(asked("gzip;q=0, identity"), None);
        assert_eq!(of_answer(&headers(ACCEPT_ENCODING, "gzip"), 10), None);
        let sent = |value| of_request(&headers(CONTENT_ENCODING, value));
        assert_eq!(sent("gzip").unwrap(), Some(Encoding::Gzip));
        assert_eq!(sent("identity").unwrap(), None);
        assert!(matches!(sent("br"), Err(ServeError::UnknownEncoding(name)) if name == "br"));
    }
}
