//! What the server takes on at most, from one client and from all of them.

use std::time::Duration;

/// Every limit of the server. Past each of them stands a refusal, or the end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections that are open at once; one more is told so and closed.
    pub connections: usize,
    /// Requests for inference that have been admitted and not been answered.
    pub requests_in_flight: usize,
    /// The body of one request, as it is sent and once it is decompressed; also one gRPC message.
    pub body_bytes: usize,
    /// The head of one request.
    pub head_bytes: usize,
    /// Requests that one HTTP/2 connection carries at once.
    pub streams_per_connection: u32,
    /// How long an HTTP/1.1 connection may wait for the whole head of its next request.
    pub idle: Duration,
    /// How long a connection may take to agree on keys, from its beginning; for TLS.
    pub handshake: Duration,
    /// How long the body of a request may take to arrive, from its head on.
    pub body_arrival: Duration,
    /// How long requests that were accepted may take to end once the server stops.
    pub drain: Duration,
    /// Regions of shared memory that are registered at once.
    pub regions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            requests_in_flight: 16_384,
            body_bytes: 64 << 20,
            head_bytes: 64 << 10,
            streams_per_connection: 1024,
            idle: Duration::from_secs(300),
            handshake: Duration::from_secs(10),
            body_arrival: Duration::from_secs(60),
            drain: Duration::from_secs(30),
            regions: 1024,
        }
    }
}
