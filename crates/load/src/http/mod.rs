//! KServe v2 over HTTP/1.1: as little as a client needs, as it shares its cores with the server that it measures.

mod chunks;
mod client;
mod connection;
mod head;
mod message;

use std::io;

pub(crate) use client::Client;
pub(crate) use connection::Connection;
pub(crate) use message::encode;

use crate::reply::Reply;

/// The longest answer that is read.
const MAX_ANSWER_BYTES: usize = 256 << 20;

/// Why there is no answer to a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    #[error("{0}")]
    Connection(#[source] io::Error),
    #[error("the server closed the connection")]
    Closed,
    #[error("{0}")]
    Malformed(String),
    #[error("the answer is longer than {MAX_ANSWER_BYTES} bytes")]
    TooLong,
}

impl ExchangeError {
    fn into_reply(self) -> Reply<'static> {
        match self {
            Self::Connection(error) => Reply::failed("a broken connection", error.to_string()),
            Self::Closed => Reply::failed("a closed connection", ""),
            Self::Malformed(problem) => Reply::failed("an answer that is not HTTP/1.1", problem),
            Self::TooLong => Reply::failed("an answer that is too long", self.to_string()),
        }
    }
}
