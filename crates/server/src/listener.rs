//! Sockets that are listened on, and the task that accepts connections from one.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::connection::{Accepted, Protocols};
use crate::error::StartError;
use crate::io_threads::Dealer;

/// Connections that wait to be accepted; the operating system may allow fewer.
const BACKLOG: i32 = 4096;

/// How long accepting rests where the operating system has no room for a connection.
const REST: Duration = Duration::from_millis(20);

/// What a connection too many is told.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";

/// A socket that is listened on, before a runtime has it.
pub(crate) struct Listening {
    socket: StdListener,
    protocols: Protocols,
    pub(crate) address: SocketAddr,
}

/// Listens on an address.
pub(crate) fn listen(address: SocketAddr, protocols: Protocols) -> Result<Listening, StartError> {
    let open = || -> std::io::Result<Listening> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let socket = StdListener::from(socket);
        let address = socket.local_addr()?;
        Ok(Listening { socket, protocols, address })
    };
    open().map_err(|source| StartError::Listen { address, source })
}

/// Accepts connections and deals them out until it is told to stop.
pub(crate) async fn accept(
    listening: Listening,
    mut dealer: Dealer,
    room: Arc<Semaphore>,
    mut stopped: watch::Receiver<bool>,
) {
    let Ok(listener) = TcpListener::from_std(listening.socket) else { return };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|is_stopped| *is_stopped) => return,
        };
        match accepted {
            Ok((stream, _)) => match room.clone().try_acquire_owned() {
                Ok(place) => {
                    let _ = stream.set_nodelay(true);
                    if let Ok(stream) = stream.into_std() {
                        let protocols = listening.protocols;
                        dealer.deal(Accepted { stream, protocols, place });
                    }
                }
                Err(_) => turn_away(stream).await,
            },
            // One that is gone already is no reason to rest, but is told apart by no portable name.
            Err(_) => tokio::time::sleep(REST).await,
        }
    }
}

async fn turn_away(mut stream: TcpStream) {
    // The socket's own buffer has room for it, so nobody is waited for.
    let _ = tokio::time::timeout(REST, stream.write_all(FULL)).await;
}
