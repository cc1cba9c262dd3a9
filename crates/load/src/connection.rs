//! Connections to a server, whatever the protocol.

use std::rc::Rc;

use bytes::Bytes;

use crate::error::LoadError;
use crate::grpc::{self, STREAMS_PER_CONNECTION};
use crate::http;
use crate::reply::Reply;
use crate::target::{Protocol, Target};

/// A way to ask the server one request at a time.
pub(crate) enum Connection {
    Http(http::Connection),
    Grpc(grpc::Stream),
}

impl Connection {
    /// Sends a request, and waits for what the server says.
    pub(crate) async fn ask(&mut self, message: &Bytes) -> Reply<'_> {
        match self {
            Connection::Http(connection) => connection.ask(message).await,
            Connection::Grpc(stream) => stream.ask(message).await,
        }
    }

    async fn open(&mut self) -> std::io::Result<()> {
        match self {
            Connection::Http(connection) => connection.open().await,
            Connection::Grpc(stream) => stream.channel.open().await.map(drop),
        }
    }
}

/// Opens as many connections as there may be. Those that were lost in an earlier run are replaced.
pub(crate) async fn fill(
    target: &Rc<Target>,
    all: &mut Vec<Connection>,
    connections: usize,
) -> Result<(), LoadError> {
    match target.protocol {
        Protocol::Http => {
            all.resize_with(connections, || {
                Connection::Http(http::Connection::new(target.clone()))
            });
        }
        Protocol::Grpc if all.len() < connections * STREAMS_PER_CONNECTION => {
            let channel = || Rc::new(grpc::Channel::new(target.clone()));
            let channels: Vec<Rc<grpc::Channel>> =
                std::iter::repeat_with(channel).take(connections).collect();
            // Calls take turns among the connections.
            let streams = channels.iter().cycle().take(connections * STREAMS_PER_CONNECTION);
            let streams = streams.map(|channel| grpc::Stream { channel: channel.clone() });
            *all = streams.map(Connection::Grpc).collect();
        }
        Protocol::Grpc => {}
    }
    for connection in all {
        let refused = |source| LoadError::Connection { address: target.address.clone(), source };
        connection.open().await.map_err(refused)?;
    }
    Ok(())
}
