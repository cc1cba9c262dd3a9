//! A server's port for administration, as commands talk to it.

use std::env;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use weft_server::StatusDocument;

/// How long a server may take to accept, and to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long a server may take to do what changes it.
const LONG_PATIENCE: Duration = Duration::from_secs(120);

/// The longest answer that is read.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// Where the key of an administrator is taken from: what stands on a command line is seen by everybody.
const KEY_VARIABLE: &str = "WEFT_ADMIN_KEY";

/// A server's port for administration.
pub(crate) struct Administration {
    address: String,
    key: Option<String>,
}

impl Administration {
    /// By HOST:PORT, or by an http:// address.
    pub(crate) fn named(address: &str) -> Self {
        let address = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
        let key = env::var(KEY_VARIABLE).ok().filter(|key| !key.is_empty());
        Self { address: address.into(), key }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// What the server says of itself now.
    pub(crate) fn status(&self) -> Result<StatusDocument> {
        self.get("/status")
    }

    /// The document at a path.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.ask("GET", path, "", PATIENCE)
    }

    /// Has the server change something, and the document that it answers with.
    pub(crate) fn change<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<T> {
        self.ask(method, path, body, LONG_PATIENCE)
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: &str,
        patience: Duration,
    ) -> Result<T> {
        let address = &self.address;
        let answer = self.exchange(method, path, body, patience).with_context(|| {
            format!(
                "no server answers at {address}; `weft serve` says where it listens for administration"
            )
        })?;
        let (status, body) = parts(&answer)
            .ok_or_else(|| anyhow!("what answers at {address} does not speak HTTP"))?;
        match status {
            "200" => serde_json::from_slice(body)
                .with_context(|| format!("{address} answers unlike a weft server")),
            "401" | "403" => {
                bail!("{address} wants the key of an administrator in {KEY_VARIABLE}")
            }
            _ => match serde_json::from_slice::<Refused>(body) {
                Ok(Refused { error }) => bail!("{address}: {error}"),
                Err(_) => {
                    bail!("{address} answers with {status}: is it the port for administration?")
                }
            },
        }
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        body: &str,
        patience: Duration,
    ) -> Result<Vec<u8>> {
        let address = self.address.to_socket_addrs()?.next().context("it has no address")?;
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let key = match &self.key {
            Some(key) => format!("authorization: Bearer {key}\r\n"),
            None => String::new(),
        };
        let (host, length) = (&self.address, body.len());
        // An answer to the older protocol comes in one piece.
        let request = format!(
            "{method} {path} HTTP/1.0\r\nhost: {host}\r\ncontent-length: {length}\r\n{key}\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer)?;
        Ok(answer)
    }
}

/// What a server says where it does not do what it is asked.
#[derive(Deserialize)]
struct Refused {
    error: String,
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
        let error = Administration::named(&format!("http://{address}/")).status().unwrap_err();
        assert!(error.to_string().contains(&address), "{error}");
    }
}
