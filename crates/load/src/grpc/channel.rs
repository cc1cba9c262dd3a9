//! One HTTP/2 connection, shared by many calls at a time.

use std::io;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::sync::Mutex;

use super::call::{CallError, head};
use crate::target::Target;

/// How much a server may send ahead, on one call and on all of a connection together.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// The method that is called over and over.
pub(super) const INFERENCE: &str = "ModelInfer";

/// A connection that is opened when it is first used, and again after it has ended.
pub(crate) struct Channel {
    pub(super) target: Arc<Target>,
    sender: Mutex<Option<SendRequest<Full<Bytes>>>>,
    /// What all requests for inference begin with.
    inference: OnceLock<Request<()>>,
}

impl Channel {
    pub(crate) fn new(target: Arc<Target>) -> Self {
        Self { target, sender: Mutex::new(None), inference: OnceLock::new() }
    }

    /// What a call of a method begins with.
    pub(super) fn head(&self, method: &str) -> Result<Request<()>, CallError> {
        match (method, self.inference.get()) {
            (INFERENCE, Some(head)) => Ok(head.clone()),
            (INFERENCE, None) => {
                let head = head(&self.target, method)?;
                Ok(self.inference.get_or_init(|| head).clone())
            }
            _ => head(&self.target, method),
        }
    }

    /// The connection's sender; connects, unless it is.
    pub(crate) async fn open(&self) -> io::Result<SendRequest<Full<Bytes>>> {
        let mut sender = self.sender.lock().await;
        if let Some(sender) = sender.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let stream = TokioIo::new(self.target.connect().await?);
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(STREAM_WINDOW_BYTES);
        builder.initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let (new, connection) = builder.handshake(stream).await.map_err(io::Error::other)?;
        // Why a connection ended is told to the calls that were on it.
        tokio::spawn(async move { drop(connection.await) });
        Ok(sender.insert(new).clone())
    }
}
