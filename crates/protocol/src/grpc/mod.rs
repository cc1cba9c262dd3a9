//! The inference service over gRPC: its messages, and what they mean.

/// Messages, server and client, generated from the description in `proto/`.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod inference {
    tonic::include_proto!("inference");
}

mod codec;
mod contents;
mod parameters;
mod request;
mod response;
