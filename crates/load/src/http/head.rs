//! The head of an HTTP/1.1 answer.

use super::ExchangeError;

/// The longest head that is read.
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_HEADERS: usize = 64;

/// What the head of an answer says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    /// Where the body begins.
    pub(super) size_bytes: usize,
    pub(super) body: BodyLength,
    /// Where in the body the JSON ends and tensors begin; `None` where all of it is JSON.
    pub(super) json_bytes: Option<usize>,
    /// True where the connection cannot be used again.
    pub(super) is_last: bool,
}

/// How long a body is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyLength {
    Known(usize),
    Chunked,
}

/// Reads a head; `None` where it is not all there yet.
pub(super) fn read(buffer: &[u8]) -> Result<Option<Head>, ExchangeError> {
    let malformed = |what: &str| ExchangeError::Malformed(what.to_string());
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut answer = httparse::Response::new(&mut headers);
    let size_bytes = match answer.parse(buffer) {
        Ok(httparse::Status::Complete(size_bytes)) => size_bytes,
        Ok(httparse::Status::Partial) if buffer.len() > MAX_HEAD_BYTES => {
            return Err(malformed("the head of the answer is too long"));
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(malformed(&format!("the answer is not HTTP/1.1: {error}"))),
    };
    let status = answer.code.unwrap_or_default();
    let mut head = Head {
        status,
        size_bytes,
        body: BodyLength::Known(0),
        json_bytes: None,
        is_last: answer.version == Some(0),
    };
    let mut has_length = matches!(status, 100..200 | 204 | 304);
    for header in answer.headers.iter() {
        let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
        let number = || value.parse::<usize>().map_err(|_| malformed("a length is no number"));
        let has_word =
            |word: &str| value.split(',').any(|entry| entry.trim().eq_ignore_ascii_case(word));
        if header.name.eq_ignore_ascii_case("content-length") {
            // What is chunked says its length itself.
            if head.body != BodyLength::Chunked {
                head.body = BodyLength::Known(number()?);
            }
            has_length = true;
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case("chunked") {
                return Err(malformed("the answer is encoded in a way that was not asked for"));
            }
            head.body = BodyLength::Chunked;
            has_length = true;
        } else if header.name.eq_ignore_ascii_case("inference-header-content-length") {
            head.json_bytes = Some(number()?);
        } else if header.name.eq_ignore_ascii_case("connection") {
            head.is_last |= has_word("close");
        }
    }
    if !has_length {
        return Err(malformed("the answer does not say how long it is"));
    }
    Ok(Some(head))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_matters_is_read() {
        let text = "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\nContent-Length: 34\r\n\
                    Inference-Header-Content-Length: 30\r\n\r\n{";
        let head = read(text.as_bytes()).unwrap().unwrap();
        assert_eq!(
            head,
            Head {
                status: 200,
                size_bytes: text.len() - 1,
                body: BodyLength::Known(34),
                json_bytes: Some(30),
                is_last: false
            }
        );
        assert_eq!(read(&text.as_bytes()[..text.len() - 3]).unwrap(), None);
    }

    #[test]
    fn connections_end_when_the_server_says_so() {
        for (text, is_last) in [
            (
                "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                true,
            ),
            (
                "HTTP/1.1 429 Too Many Requests\r\nConnection: foo, Close\r\nContent-Length: 0\r\n\r\n",
                true,
            ),
            ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", false),
        ] {
            assert_eq!(read(text.as_bytes()).unwrap().unwrap().is_last, is_last, "{text}");
        }
    }

    #[test]
    fn answers_of_unknown_length_or_form_are_refused() {
        for text in [
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "SSH-2.0-OpenSSH\r\n\r\n",
        ] {
            assert!(matches!(read(text.as_bytes()), Err(ExchangeError::Malformed(_))), "{text}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(MAX_HEAD_BYTES));
        assert!(read(endless.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn hostile_bytes_end_in_a_value(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
            let _ = read(&[b"HTTP/1.1 200 OK\r\n", bytes.as_slice()].concat());
        }
    }
}
