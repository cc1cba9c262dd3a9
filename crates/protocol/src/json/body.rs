//! A body: its header in JSON, and the bytes of tensors behind it.

use bytes::Bytes;

use crate::error::ProtocolError;

/// The header's length is a multiple of this, so that tensors behind it are aligned where the body is.
const HEADER_ALIGNMENT: usize = 8;

/// A body to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedBody {
    /// The header, and what follows it.
    pub body: Bytes,
    /// How much of it is the header, to be sent as `Inference-Header-Content-Length`; `None` where that is all of it.
    pub header_length: Option<usize>,
}

impl EncodedBody {
    /// A body of a header and `binary_bytes` more, which `append` adds.
    pub(super) fn new(
        mut header: Vec<u8>,
        binary_bytes: Option<usize>,
        append: impl FnOnce(&mut Vec<u8>) -> Result<(), ProtocolError>,
    ) -> Result<Self, ProtocolError> {
        let Some(binary_bytes) = binary_bytes else {
            return Ok(Self { body: header.into(), header_length: None });
        };
        let header_length = header.len().next_multiple_of(HEADER_ALIGNMENT);
        header.reserve_exact(header_length - header.len() + binary_bytes);
        header.resize(header_length, b' ');
        append(&mut header)?;
        Ok(Self { body: header.into(), header_length: Some(header_length) })
    }
}

/// A received body: the text of its header, and the bytes behind it that no tensor has taken yet.
pub(super) struct ReceivedBody<'a> {
    pub(super) header: &'a str,
    binary: Option<Bytes>,
}

impl<'a> ReceivedBody<'a> {
    pub(super) fn new(
        body: &'a Bytes,
        header_length: Option<usize>,
    ) -> Result<Self, ProtocolError> {
        let length = header_length.unwrap_or(body.len());
        let malformed = |problem| Err(ProtocolError::Malformed(problem));
        if length > body.len() {
            return malformed(format!(
                "the header is said to have {length} bytes, but the body has {}",
                body.len()
            ));
        }
        let Ok(header) = str::from_utf8(&body[..length]) else {
            return malformed("the JSON is not UTF-8".into());
        };
        Ok(Self { header, binary: header_length.map(|length| body.slice(length..)) })
    }

    /// The next `size_bytes` behind the header.
    pub(super) fn take(&mut self, size_bytes: usize) -> Result<Bytes, String> {
        let binary = self.binary.as_mut().ok_or(
            "has binary data, but the length of the header (Inference-Header-Content-Length) is not given",
        )?;
        if binary.len() < size_bytes {
            return Err(format!(
                "{size_bytes} bytes of binary data are announced, {} are left",
                binary.len()
            ));
        }
        Ok(binary.split_to(size_bytes))
    }

    /// Refuses bytes that no tensor took.
    pub(super) fn check_end(self) -> Result<(), ProtocolError> {
        match self.binary.map_or(0, |rest| rest.len()) {
            0 => Ok(()),
            left => Err(ProtocolError::Malformed(format!(
                "{left} bytes of binary data belong to no tensor"
            ))),
        }
    }
}
