//! One kept-alive connection of HTTP/1.1: a request out in one piece, its answer back.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, Interest};
use tokio::net::TcpStream;

use super::chunks::Chunks;
use super::head::{self, BodyLength, Head};
use super::message::reply_of;
use super::{ExchangeError, MAX_ANSWER_BYTES};
use crate::reply::{OutputPlace, Reply};
use crate::target::Target;

/// Room that is made for an answer whose length is not known yet.
const READ_BYTES: usize = 16 << 10;

/// A connection that is opened when it is first used, and again after the server has ended it.
pub(crate) struct Connection {
    target: Arc<Target>,
    stream: Option<TcpStream>,
    /// What was received.
    received: Vec<u8>,
    /// A body that came in chunks.
    joined: Vec<u8>,
}

/// An answer, in the connection's memory.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
    /// Where in the body the JSON ends and tensors begin; `None` where all of it is JSON.
    pub(crate) json_bytes: Option<usize>,
}

impl Connection {
    pub(crate) fn new(target: Arc<Target>) -> Self {
        Self { target, stream: None, received: Vec::new(), joined: Vec::new() }
    }

    /// Connects, unless it is.
    pub(crate) async fn open(&mut self) -> io::Result<()> {
        // A server ends connections that were idle for long; its goodbye is there to read by then.
        let is_over = self.stream.as_ref().is_none_or(|stream| {
            !matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
        });
        if is_over {
            self.stream = None;
            self.stream = Some(self.target.connect().await?);
        }
        Ok(())
    }

    /// Sends a request for inference.
    pub(crate) async fn ask(&mut self, request: &[u8], outputs: OutputPlace) -> Reply<'_> {
        match self.exchange(request).await {
            Ok(answer) => reply_of(answer, outputs),
            Err(error) => error.into_reply(),
        }
    }

    /// Sends a whole request, head and body, and reads the answer.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<Answer<'_>, ExchangeError> {
        self.received.clear();
        self.joined.clear();
        self.open().await.map_err(ExchangeError::Connection)?;
        let stream = self.stream.as_mut().ok_or(ExchangeError::Closed)?;
        // Until the answer has been read to its end, nothing else may be sent.
        let outcome = async {
            let is_sent = send(stream, request, &mut self.received).await;
            let head = receive(stream, &mut self.received, &mut self.joined).await?;
            Ok((head, is_sent))
        };
        let outcome = outcome.await;
        let is_reusable = matches!(&outcome, Ok((head, true)) if !head.is_last);
        if !is_reusable {
            self.stream = None;
        }
        let (head, _) = outcome?;
        let body = match head.body {
            BodyLength::Known(length) => &self.received[head.size_bytes..][..length],
            BodyLength::Chunked => &self.joined[..],
        };
        Ok(Answer { status: head.status, body, json_bytes: head.json_bytes })
    }
}

/// Sends until all is sent, or the answer comes before: a server that refuses need not read what it refuses. True where
/// all was sent.
async fn send(stream: &mut TcpStream, mut rest: &[u8], received: &mut Vec<u8>) -> bool {
    while !rest.is_empty() {
        match stream.try_write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let interest = Interest::READABLE | Interest::WRITABLE;
                let Ok(ready) = stream.ready(interest).await else { return false };
                received.reserve(READ_BYTES);
                if ready.is_readable() && stream.try_read_buf(received).is_ok() {
                    return false;
                }
            }
            // Why is in what the server has sent before it hung up, if it has.
            Err(_) => return false,
        }
    }
    true
}

/// Reads one answer to its end.
async fn receive(
    stream: &mut TcpStream,
    received: &mut Vec<u8>,
    joined: &mut Vec<u8>,
) -> Result<Head, ExchangeError> {
    let head = loop {
        match head::read(received)? {
            // What comes before the answer is not it.
            Some(head) if (100..200).contains(&head.status) => {
                received.drain(..head.size_bytes);
            }
            Some(head) => break head,
            None => read_more(stream, received, READ_BYTES).await?,
        }
    };
    match head.body {
        BodyLength::Known(length) => {
            if length > MAX_ANSWER_BYTES {
                return Err(ExchangeError::TooLong);
            }
            let end = head.size_bytes + length;
            while received.len() < end {
                let missing = end - received.len();
                read_more(stream, received, missing).await?;
            }
        }
        BodyLength::Chunked => {
            let mut chunks = Chunks::default();
            while !chunks.advance(&received[head.size_bytes..], joined)? {
                read_more(stream, received, READ_BYTES).await?;
            }
        }
    }
    Ok(head)
}

async fn read_more(
    stream: &mut TcpStream,
    received: &mut Vec<u8>,
    room: usize,
) -> Result<(), ExchangeError> {
    received.reserve(room);
    match stream.read_buf(received).await {
        Ok(0) => Err(ExchangeError::Closed),
        Ok(_) => Ok(()),
        Err(error) => Err(ExchangeError::Connection(error)),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    async fn listen() -> (TcpListener, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let target = Arc::new(Target::parse(&address, None).unwrap());
        (listener, Connection::new(target))
    }

    #[tokio::test]
    async fn an_answer_that_comes_before_all_is_sent_is_an_answer() {
        let (listener, mut connection) = listen().await;
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_exact(&mut [0; 100]).await.unwrap();
            stream.write_all(b"HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n").await.unwrap();
            // The rest is never read; nothing but the answer can end the exchange.
            stream
        };
        let request = vec![b'x'; 32 << 20];
        let (stream, answer) = tokio::join!(server, connection.exchange(&request));
        assert_eq!(answer.unwrap().status, 429);
        drop(stream);
        assert!(connection.stream.is_none(), "half of a request is on it");
    }

    #[tokio::test]
    async fn a_connection_that_the_server_has_ended_is_opened_again() {
        let (listener, mut connection) = listen().await;
        for _ in 0..2 {
            let server = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.read_exact(&mut [0; 4]).await.unwrap();
                stream.write_all(OK).await.unwrap();
            };
            let ((), answer) = tokio::join!(server, connection.exchange(b"ping"));
            assert_eq!(answer.unwrap().body, b"ok");
            // The end of the connection is known when it can be read.
            connection.stream.as_ref().unwrap().readable().await.unwrap();
        }
    }

    #[tokio::test]
    async fn answers_in_pieces_are_put_together() {
        let (listener, mut connection) = listen().await;
        let answers: [&[u8]; 3] = [
            b"HTTP/1.1 100 Continue\r\n\r\n",
            OK,
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ];
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            for answers in [&answers[..2], &answers[2..]] {
                stream.read_exact(&mut [0; 4]).await.unwrap();
                for byte in answers.concat() {
                    stream.write_all(&[byte]).await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
            stream
        };
        let client = async {
            assert_eq!(connection.exchange(b"ping").await.unwrap().body, b"ok");
            assert_eq!(connection.exchange(b"ping").await.unwrap().body, b"ok");
        };
        tokio::join!(server, client);
    }

    #[tokio::test]
    async fn a_connection_that_breaks_is_told() {
        let (listener, mut connection) = listen().await;
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_exact(&mut [0; 4]).await.unwrap();
            stream.write_all(&OK[..OK.len() - 1]).await.unwrap();
        };
        let ((), answer) = tokio::join!(server, connection.exchange(b"ping"));
        assert!(matches!(answer, Err(ExchangeError::Closed)));
    }
}
