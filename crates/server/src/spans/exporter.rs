//! The thread that sends spans to a collector, in batches, over OTLP/HTTP. Who makes spans never waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ::http::header::{CONTENT_TYPE, HOST};
use ::http::uri::{Authority, Scheme};
use ::http::{Request, Uri};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

use super::ids::Ids;
use super::otlp;
use super::request::RequestSpan;
use crate::answer::AnswerBody;

/// Requests whose spans wait to be sent; more are dropped and counted.
const MAX_WAITING: usize = 4096;

/// Requests whose spans are sent together.
const MAX_BATCH: usize = 512;

/// How long the first of a batch waits for others.
const GATHER: Duration = Duration::from_secs(1);

/// How long a collector may take to accept a batch.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where spans are sent below what is configured, as the protocol has it.
const PATH: &str = "/v1/traces";

/// Why spans cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// It cannot be understood, or is not plain HTTP.
    #[error("'{0}' is no http:// address of a collector")]
    Endpoint(String),
    /// The operating system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// Sends spans until it is dropped, which sends what waits.
pub(crate) struct SpanExporter {
    waiting: Option<Sender<RequestSpan>>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    dropped: AtomicU64,
}

impl SpanExporter {
    /// Sends to a collector, such as `http://127.0.0.1:4318`.
    pub(crate) fn start(endpoint: &str) -> Result<Self, ExportError> {
        let collector =
            Collector::parse(endpoint).ok_or_else(|| ExportError::Endpoint(endpoint.into()))?;
        let (waiting, received) = channel(MAX_WAITING);
        let counts = Arc::<Counts>::default();
        let counted = counts.clone();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let work = move || work(&runtime, &collector, received, &counted);
        let thread = thread::Builder::new().name("weft-spans".into()).spawn(work)?;
        Ok(Self { waiting: Some(waiting), counts, thread: Some(thread) })
    }

    /// Requests whose spans a collector has accepted.
    pub(crate) fn sent(&self) -> u64 {
        self.counts.sent.load(Ordering::Relaxed)
    }

    /// Requests whose spans were dropped: too many waited, or the collector did not accept them.
    pub(crate) fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    /// Has a span sent, or dropped where too many wait.
    pub(super) fn export(&self, span: RequestSpan) {
        let has_room = self.waiting.as_ref().is_some_and(|waiting| waiting.try_send(span).is_ok());
        if !has_room {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for SpanExporter {
    fn drop(&mut self) {
        self.waiting = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(
    runtime: &Runtime,
    collector: &Collector,
    mut received: Receiver<RequestSpan>,
    counts: &Counts,
) {
    let ids = Ids::new();
    let mut is_failing = false;
    runtime.block_on(async {
        loop {
            let batch = gather(&mut received).await;
            if batch.is_empty() {
                return;
            }
            let document = otlp::document(&batch, &ids);
            let sent = timeout(PATIENCE, collector.send(document)).await;
            let failure = match sent {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("it does not answer in time".into()),
            };
            let count = if failure.is_none() { &counts.sent } else { &counts.dropped };
            count.fetch_add(batch.len() as u64, Ordering::Relaxed);
            // Said when it begins and when it is over, not for each batch.
            match (&failure, is_failing) {
                (Some(why), false) => tracing::warn!(why, "the collector takes no spans"),
                (None, true) => tracing::info!("the collector takes spans again"),
                _ => {}
            }
            is_failing = failure.is_some();
        }
    });
}

/// The next batch; empty where there will be no more.
async fn gather(received: &mut Receiver<RequestSpan>) -> Vec<RequestSpan> {
    let mut batch = Vec::new();
    batch.extend(received.recv().await);
    let fill = async {
        while !batch.is_empty() && batch.len() < MAX_BATCH {
            match received.recv().await {
                Some(span) => batch.push(span),
                None => return,
            }
        }
    };
    let _ = timeout(GATHER, fill).await;
    batch
}

/// Where spans are sent.
struct Collector {
    authority: Authority,
    path: String,
}

impl Collector {
    fn parse(endpoint: &str) -> Option<Self> {
        let parts = endpoint.parse::<Uri>().ok()?.into_parts();
        let path = parts.path_and_query.as_ref().map_or("", |path| path.path());
        let path = path.trim_end_matches('/');
        let path = if path.ends_with(PATH) { path.into() } else { format!("{path}{PATH}") };
        let authority = parts.authority.filter(|_| parts.scheme == Some(Scheme::HTTP))?;
        Some(Self { authority, path })
    }

    async fn send(&self, document: String) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        const HTTP: u16 = 80;
        let port = self.authority.port_u16().unwrap_or(HTTP);
        let host = self.authority.host().trim_matches(['[', ']']);
        let stream = TcpStream::connect((host, port)).await?;
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
        let request = Request::post(&self.path)
            .header(HOST, self.authority.as_str())
            .header(CONTENT_TYPE, "application/json")
            .body(AnswerBody::whole(document))?;
        let answered = sender.send_request(request);
        let (answer, _) = tokio::join!(
            async {
                let answer = answered.await;
                // The connection ends once nobody sends any more.
                drop(sender);
                answer.map(|answer| answer.status())
            },
            connection
        );
        let status = answer?;
        if status.is_success() { Ok(()) } else { Err(format!("it answers with {status}").into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_addresses_of_plain_http() {
        let path = |endpoint| Collector::parse(endpoint).map(|collector| collector.path);
        assert_eq!(path("http://127.0.0.1:4318").as_deref(), Some("/v1/traces"));
        assert_eq!(path("http://collector/a/").as_deref(), Some("/a/v1/traces"));
        assert_eq!(path("http://[::1]:4318/v1/traces").as_deref(), Some("/v1/traces"));
        for wrong in ["", "127.0.0.1:4318", "https://collector", "http://", "a b", "grpc://x:1"] {
            assert!(Collector::parse(wrong).is_none(), "{wrong}");
        }
    }
}
