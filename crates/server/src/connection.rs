//! One connection: which protocol it speaks, and the tasks that serve it.

use std::convert::Infallible;
use std::net::TcpStream as StdStream;
use std::sync::Arc;

use ::http::header::CONTENT_TYPE;
use ::http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;

use crate::answer::AnswerBody;
use crate::grpc::{self, GrpcService, grpc_service};
use crate::http::route;
use crate::inference::Serving;

/// How much of an HTTP/2 stream, and of a connection, may be on its way before it is read.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocols {
    HttpAndGrpc,
    GrpcOnly,
}

/// A connection that was accepted and waits for the thread that carries it.
pub(crate) struct Accepted {
    pub(crate) stream: StdStream,
    pub(crate) protocols: Protocols,
    /// Held for as long as the connection is open.
    pub(crate) place: OwnedSemaphorePermit,
}

/// What the connections of one thread share.
pub(crate) struct Connections {
    serving: Arc<Serving>,
    grpc: GrpcService,
    either: Builder<TokioExecutor>,
    grpc_only: Builder<TokioExecutor>,
    stopped: watch::Receiver<bool>,
}

impl Connections {
    pub(crate) fn new(serving: Arc<Serving>, stopped: watch::Receiver<bool>) -> Self {
        let limits = &serving.limits;
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.idle)
            .max_buf_size(limits.head_bytes);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(limits.idle)
            .max_concurrent_streams(limits.streams_per_connection)
            .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let grpc = grpc_service(serving.clone());
        Self { serving, grpc, grpc_only: builder.clone().http2_only(), either: builder, stopped }
    }

    /// Serves a connection beside the others, until it ends or the shutdown has let it finish.
    pub(crate) fn serve(&self, accepted: Accepted, graceful: &GracefulShutdown) {
        let Ok(stream) = TcpStream::from_std(accepted.stream) else { return };
        let (serving, grpc) = (self.serving.clone(), self.grpc.clone());
        let (protocols, handshake) = (accepted.protocols, serving.limits.handshake);
        let silence = if serving.tls.is_some() { handshake } else { serving.limits.idle };
        let builder = match protocols {
            Protocols::HttpAndGrpc => self.either.clone(),
            Protocols::GrpcOnly => self.grpc_only.clone(),
        };
        let (watcher, mut stopped) = (graceful.watcher(), self.stopped.clone());
        let place = accepted.place;
        tokio::spawn(async move {
            // One that says nothing costs no more than its socket, and is not waited for when the server stops.
            let speaks = tokio::select! {
                spoken = timeout(silence, stream.readable()) => matches!(spoken, Ok(Ok(()))),
                _ = stopped.wait_for(|is_stopped| *is_stopped) => false,
            };
            if !speaks {
                return;
            }
            let Some(tls) = serving.tls.clone() else {
                return carry(stream, builder, (serving, grpc), watcher, place).await;
            };
            // Apart, so that those without TLS do not take its room.
            let private = tokio::select! {
                private = Box::pin(tls.accept(stream, protocols, handshake)) => private,
                _ = stopped.wait_for(|is_stopped| *is_stopped) => None,
            };
            if let Some(private) = private {
                Box::pin(carry(private, builder, (serving, grpc), watcher, place)).await;
            }
        });
    }
}

/// Carries a connection to its end, in its place.
async fn carry(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    builder: Builder<TokioExecutor>,
    (serving, grpc): (Arc<Serving>, GrpcService),
    watcher: Watcher,
    _place: OwnedSemaphorePermit,
) {
    let service = service_fn(move |request| answer(serving.clone(), grpc.clone(), request));
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    // A connection that breaks has nobody left to tell.
    let _ = Box::pin(watcher.watch(connection)).await;
}

async fn answer(
    serving: Arc<Serving>,
    grpc: GrpcService,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Infallible> {
    if is_grpc(&request) {
        let answer = grpc::call(grpc, request, &serving).await?;
        Ok(answer.map(AnswerBody::Grpc))
    } else {
        Ok(route(&serving, request).await)
    }
}

fn is_grpc(request: &Request<Incoming>) -> bool {
    let content_type = request.headers().get(CONTENT_TYPE);
    content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}
