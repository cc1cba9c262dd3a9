//! The server that the load is for, and how it is talked to.

use std::fmt;
use std::io;

use tokio::net::TcpStream;

use crate::error::LoadError;

/// Where servers listen if nothing else is said.
const HTTP_PORT: u16 = 8000;
const GRPC_PORT: u16 = 8001;

/// What requests are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 with tensors as bytes, or as JSON where the server does not offer the extension.
    Http,
    /// gRPC with tensors as bytes.
    Grpc,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Http => "HTTP",
            Protocol::Grpc => "gRPC",
        })
    }
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Host and port.
    pub address: String,
    /// What comes before `/v2`, without a slash at its end.
    pub prefix: String,
    /// How it is talked to.
    pub protocol: Protocol,
    /// What the caller is known by, if the server asks.
    pub api_key: Option<String>,
}

impl Target {
    /// A server by its address: `http://host:port`, `grpc://host:port`, or either without what can be guessed. A protocol
    /// that is given must not contradict the address.
    pub fn parse(url: &str, protocol: Option<Protocol>) -> Result<Self, LoadError> {
        let wrong = |problem: &str| LoadError::Address { url: url.into(), problem: problem.into() };
        let (scheme, rest) = match url.split_once("://") {
            Some((scheme, rest)) => (Some(scheme), rest),
            None => (None, url),
        };
        let named = match scheme {
            None => None,
            Some("http") => Some(Protocol::Http),
            Some("grpc") => Some(Protocol::Grpc),
            Some("https" | "grpcs") => return Err(wrong("connections are not encrypted")),
            Some(_) => return Err(wrong("it begins with http:// or grpc://")),
        };
        let protocol = match (named, protocol) {
            // Both protocols of a server are often behind one address, which is then written as its HTTP one.
            (Some(Protocol::Http), Some(protocol)) => protocol,
            (Some(named), Some(protocol)) if named != protocol => {
                return Err(wrong("it contradicts the protocol"));
            }
            (named, protocol) => named.or(protocol).unwrap_or(Protocol::Http),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let prefix = path.trim_end_matches('/').trim_end_matches("/v2").to_string();
        let is_text = rest.bytes().all(|byte| byte.is_ascii_graphic());
        if authority.is_empty() || authority.contains('@') || !is_text {
            return Err(wrong("it has no host, or more than a host and a port"));
        }
        if rest.contains(['?', '#']) {
            return Err(wrong("it has more than a path"));
        }
        // Colons inside brackets are those of an IPv6 address.
        let has_port = authority.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let default = if protocol == Protocol::Http { HTTP_PORT } else { GRPC_PORT };
        let address = match has_port {
            true => authority.to_string(),
            false => format!("{authority}:{default}"),
        };
        let port = address.rsplit(':').next().unwrap_or_default();
        if port.parse::<u16>().is_err() {
            return Err(wrong("its port is no number up to 65535"));
        }
        Ok(Self { address, prefix, protocol, api_key: None })
    }

    /// A new connection that sends what it is given at once.
    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed() {
        for (url, given, address, prefix, protocol) in [
            ("localhost", None, "localhost:8000", "", Protocol::Http),
            ("localhost", Some(Protocol::Grpc), "localhost:8001", "", Protocol::Grpc),
            ("http://host:80/", None, "host:80", "", Protocol::Http),
            ("http://host/a/v2/", None, "host:8000", "/a", Protocol::Http),
            ("http://host:9", Some(Protocol::Grpc), "host:9", "", Protocol::Grpc),
            ("grpc://[::1]", None, "[::1]:8001", "", Protocol::Grpc),
            ("[::1]:7", None, "[::1]:7", "", Protocol::Http),
        ] {
            let target = Target::parse(url, given).unwrap();
            let found = (target.address.as_str(), target.prefix.as_str(), target.protocol);
            assert_eq!(found, (address, prefix, protocol), "{url}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in [
            "",
            "http://",
            "https://host",
            "ftp://host",
            "host:port",
            "host:70000",
            "a b",
            "u@host",
            "host/?a=1",
            "http://host\r\nX: y",
        ] {
            assert!(matches!(Target::parse(url, None), Err(LoadError::Address { .. })), "{url}");
        }
        assert!(Target::parse("grpc://host", Some(Protocol::Http)).is_err());
    }
}
