//! KServe v2 over gRPC: unary calls on HTTP/2 connections, with messages that were encoded before.

mod call;
mod channel;
mod client;
mod status;
mod stream;

pub(crate) use channel::Channel;
pub(crate) use client::{Client, encode};
pub(crate) use stream::Stream;

/// The most requests at a time on one connection: below what servers allow.
pub(crate) const STREAMS_PER_CONNECTION: usize = 64;
