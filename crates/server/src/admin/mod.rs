//! Administration: a port of its own for metrics, the state of the server, and traces of what it does.

mod access;
mod error;
mod page;
mod recent;
mod status;
mod status_document;
mod trace;
mod tuning;

pub use status_document::{
    LatencyDocument, MembershipDocument, MemoryDocument, ModelDocument, ObjectiveDocument,
    PartitionDocument, PredictionDocument, RunningDocument, StatusDocument,
};

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use ::http::header::CONTENT_TYPE;
use ::http::request::Parts;
use ::http::{HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::time::{MissedTickBehavior, interval, sleep};

use self::access::authorise;
use self::error::AdminError;
use self::recent::Recent;
use crate::answer::AnswerBody;
use crate::error::StartError;
use crate::inference::Serving;

/// Connections that are open at once; more wait.
const MAX_CONNECTIONS: usize = 64;

/// How long a connection may wait for the head of its next request.
const IDLE: Duration = Duration::from_secs(60);

/// How often the counts are looked at, so that what is recent can be told.
const LOOK: Duration = Duration::from_secs(1);

/// How long accepting rests where the operating system has no room for a connection.
const REST: Duration = Duration::from_millis(50);

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A socket for administration, before it is served.
pub(crate) struct AdminSocket {
    socket: StdListener,
    address: SocketAddr,
}

/// The thread that administration has. It ends when this is dropped.
pub(crate) struct Admin {
    pub(crate) address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Admin {
    /// Listens on an address.
    pub(crate) fn listen(address: SocketAddr) -> Result<AdminSocket, StartError> {
        let open = || -> std::io::Result<AdminSocket> {
            let socket = StdListener::bind(address)?;
            socket.set_nonblocking(true)?;
            let address = socket.local_addr()?;
            Ok(AdminSocket { socket, address })
        };
        open().map_err(|source| StartError::Listen { address, source })
    }
}

impl AdminSocket {
    /// Answers from now on.
    pub(crate) fn start(self, serving: Arc<Serving>) -> std::io::Result<Admin> {
        let (stop, stopped) = watch::channel(false);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (socket, address) = (self.socket, self.address);
        let office = Arc::new(Office::new(serving));
        let work = move || work(&runtime, socket, &office, stopped);
        let thread = thread::Builder::new().name("weft-admin".into()).spawn(work)?;
        tracing::info!(%address, "listening for administration");
        Ok(Admin { address, stop, thread: Some(thread) })
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What answers are made from.
struct Office {
    serving: Arc<Serving>,
    recent: Mutex<Recent>,
    started: SystemTime,
}

impl Office {
    fn new(serving: Arc<Serving>) -> Self {
        let office =
            Self { serving, recent: Mutex::new(Recent::default()), started: SystemTime::now() };
        office.look();
        office
    }

    /// Remembers the counts of this moment.
    fn look(&self) {
        self.recent().look(self.serving.models.metrics(), Instant::now());
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request, whatever it is.
    async fn answer(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        let (parts, body) = request.into_parts();
        match self.document(&parts, body).await {
            Ok((content_type, body)) => {
                let mut answer = Response::new(AnswerBody::whole(body));
                answer.headers_mut().insert(CONTENT_TYPE, content_type);
                answer
            }
            Err(error) => {
                let body = serde_json::json!({ "error": error.to_string() }).to_string();
                let mut answer = Response::new(AnswerBody::whole(body));
                *answer.status_mut() = error.status();
                answer.headers_mut().insert(CONTENT_TYPE, JSON);
                answer
            }
        }
    }

    async fn document(
        &self,
        parts: &Parts,
        body: Incoming,
    ) -> Result<(HeaderValue, String), AdminError> {
        authorise(&self.serving.tenants, parts)?;
        let path = parts.uri.path();
        let is_known = matches!(path, "/metrics" | "/status" | "/trace" | "/health");
        if is_known && parts.method != Method::GET {
            return Err(AdminError::WrongMethod { path: path.into(), allowed: "GET" });
        }
        match path {
            "/metrics" => Ok((TEXT, page::write(self))),
            "/status" => Ok((JSON, status::write(self))),
            "/trace" => Ok((JSON, trace::record(&self.serving, parts.uri.query()).await?)),
            "/tuning" => Ok((JSON, tuning::answer(&self.serving, &parts.method, body).await?)),
            "/health" => Ok((JSON, r#"{"status":"ok"}"#.into())),
            _ => Err(AdminError::UnknownPath(path.into())),
        }
    }
}

fn work(
    runtime: &Runtime,
    socket: StdListener,
    office: &Arc<Office>,
    mut stopped: watch::Receiver<bool>,
) {
    runtime.block_on(async {
        let Ok(listener) = TcpListener::from_std(socket) else { return };
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let accepted = async || {
            let place = room.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        loop {
            tokio::select! {
                (place, accepted) = accepted() => match accepted {
                    Ok((stream, _)) => {
                        let office = office.clone();
                        tokio::spawn(async move {
                            serve(stream, &office).await;
                            drop(place);
                        });
                    }
                    Err(_) => sleep(REST).await,
                },
                _ = looks.tick() => office.look(),
                _ = stopped.wait_for(|is_stopped| *is_stopped) => return,
            }
        }
    });
}

async fn serve(stream: TcpStream, office: &Arc<Office>) {
    let service = service_fn(move |request| {
        let office = office.clone();
        async move { Ok::<_, Infallible>(office.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .serve_connection(TokioIo::new(stream), service);
    // A connection that breaks has nobody left to tell.
    let _ = connection.await;
}
