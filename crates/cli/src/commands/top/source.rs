//! The server that is looked at.

use std::env;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use weft_server::StatusDocument;

/// How long a server may take to accept, and to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The longest answer that is read.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// Where the key of an administrator is taken from: what stands on a command line is seen by everybody.
const KEY_VARIABLE: &str = "WEFT_ADMIN_KEY";

/// A server's port for administration.
pub(super) struct Source {
    address: String,
    key: Option<String>,
}

impl Source {
    /// By HOST:PORT, or by an http:// address.
    pub(super) fn named(address: &str) -> Self {
        let address = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
        let key = env::var(KEY_VARIABLE).ok().filter(|key| !key.is_empty());
        Self { address: address.into(), key }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// What the server says of itself now.
    pub(super) fn status(&self) -> Result<StatusDocument> {
        let answer = self.get("/status").with_context(|| {
            format!(
                "no server answers at {}; `weft serve` says where it listens for administration",
                self.address
            )
        })?;
        let (status, body) = parts(&answer)
            .ok_or_else(|| anyhow!("what answers at {} does not speak HTTP", self.address))?;
        match status {
            "200" => serde_json::from_slice(body)
                .with_context(|| format!("{} is not the status of a weft server", self.address)),
            "401" | "403" => {
                bail!("{} wants the key of an administrator in {KEY_VARIABLE}", self.address)
            }
            _ => {
                bail!("{} answers with {status}: is it the port for administration?", self.address)
            }
        }
    }

    fn get(&self, path: &str) -> Result<Vec<u8>> {
        let address = self.address.to_socket_addrs()?.next().context("it has no address")?;
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let key = match &self.key {
            Some(key) => format!("authorization: Bearer {key}\r\n"),
            None => String::new(),
        };
        // An answer to the older protocol comes in one piece.
        let head = format!("GET {path} HTTP/1.0\r\nhost: {}\r\n{key}\r\n", self.address);
        stream.write_all(head.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer)?;
        Ok(answer)
    }
}

/// The status and the body of an answer.
fn parts(answer: &[u8]) -> Option<(&str, &[u8])> {
    const END: &[u8] = b"\r\n\r\n";
    let end = answer.windows(END.len()).position(|window| window == END)?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?;
    Some((status, &answer[end + END.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_apart() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(parts(answer), Some(("200", &b"{}"[..])));
        assert_eq!(parts(b"HTTP/1.0 404 Not Found\r\n\r\n"), Some(("404", &b""[..])));
        for garbage in [&b""[..], b"\r\n\r\n", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\n"] {
            assert_eq!(parts(garbage), None);
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_told() {
        // A port that was free a moment ago, and is again.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let error = Source::named(&format!("http://{address}/")).status().unwrap_err();
        assert!(error.to_string().contains(&address), "{error}");
    }
}
