//! Connections to a server, whatever the protocol.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::LoadError;
use crate::grpc::{self, STREAMS_PER_CONNECTION};
use crate::http;
use crate::reply::{OutputPlace, Reply};
use crate::target::{Protocol, Target};

/// A way to ask the server one request at a time.
pub(crate) struct Connection {
    wire: Wire,
    /// Where in shared memory outputs go; no two connections have the same.
    pub(crate) slot: usize,
}

enum Wire {
    Http(http::Connection),
    Grpc(grpc::Stream),
}

impl Connection {
    /// Sends a request, and waits for what the server says.
    pub(crate) async fn ask(&mut self, message: &Bytes, outputs: OutputPlace) -> Reply<'_> {
        match &mut self.wire {
            Wire::Http(connection) => connection.ask(message, outputs).await,
            Wire::Grpc(stream) => stream.ask(message, outputs).await,
        }
    }

    async fn open(&mut self) -> std::io::Result<()> {
        match &mut self.wire {
            Wire::Http(connection) => connection.open().await,
            Wire::Grpc(stream) => stream.channel.open().await.map(drop),
        }
    }
}

/// How many requests at a time a connection carries.
pub(crate) fn requests_at_a_time(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Http => 1,
        Protocol::Grpc => STREAMS_PER_CONNECTION,
    }
}

/// Opens connections, one for each slot. Those that were lost in an earlier run are replaced.
pub(crate) async fn fill(
    target: &Arc<Target>,
    all: &mut Vec<Connection>,
    slots: Range<usize>,
) -> Result<(), LoadError> {
    match target.protocol {
        Protocol::Http => {
            let is_lost = |slot: &usize| all.iter().all(|connection| connection.slot != *slot);
            let lost: Vec<usize> = slots.filter(is_lost).collect();
            let wire = || Wire::Http(http::Connection::new(target.clone()));
            all.extend(lost.into_iter().map(|slot| Connection { wire: wire(), slot }));
        }
        Protocol::Grpc if all.len() < slots.len() => {
            let channel = || Arc::new(grpc::Channel::new(target.clone()));
            let channels: Vec<Arc<grpc::Channel>> = std::iter::repeat_with(channel)
                .take(slots.len().div_ceil(STREAMS_PER_CONNECTION))
                .collect();
            // Calls take turns among the connections.
            let streams = slots.zip(channels.iter().cycle()).map(|(slot, channel)| Connection {
                wire: Wire::Grpc(grpc::Stream { channel: channel.clone() }),
                slot,
            });
            *all = streams.collect();
        }
        Protocol::Grpc => {}
    }
    for connection in all {
        let refused = |source| LoadError::Connection { address: target.address.clone(), source };
        connection.open().await.map_err(refused)?;
    }
    Ok(())
}
