//! A running server: its sockets and its threads, from start to stop.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use weft_engine::Engine;
use weft_repository::TlsFiles;

use crate::admin::Admin;
use crate::connection::Protocols;
use crate::door::Door;
use crate::error::StartError;
use crate::inference::Serving;
use crate::io_threads::IoThreads;
use crate::limits::Limits;
use crate::listener::listen;
use crate::models::ModelTable;
use crate::repository::Repository;
use crate::shared_memory::Regions;
use crate::spans::SpanExporter;
use crate::tenants::Tenants;
use crate::tls::Tls;
use crate::tuning::KernelTuning;
use crate::wakes::Wakes;

/// Where a server listens, and how much it takes on.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// For HTTP and gRPC; port 0 is any that is free.
    pub address: SocketAddr,
    /// For gRPC alone, beside that.
    pub grpc_address: Option<SocketAddr>,
    /// For administration: metrics, status and traces.
    pub admin_address: Option<SocketAddr>,
    /// Where the spans of requests are sent: the http:// address of a collector of OpenTelemetry.
    pub otlp_endpoint: Option<String>,
    /// Threads that carry connections.
    pub io_threads: NonZeroUsize,
    /// What it takes on.
    pub limits: Limits,
    /// Who may ask; whoever holds it too can replace them while the server runs.
    pub tenants: Arc<Tenants>,
    /// Where connections are made private, by what.
    pub tls: Option<TlsFiles>,
    /// Tunes the kernels of what is served, where administrators may have that.
    pub tuning: Option<Arc<KernelTuning>>,
}

impl ServerOptions {
    /// An address, and everything else as is usual.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            grpc_address: None,
            admin_address: None,
            otlp_endpoint: None,
            io_threads: default_io_threads(),
            limits: Limits::default(),
            tenants: Arc::default(),
            tls: None,
            tuning: None,
        }
    }
}

/// One thread carries the small requests that four cores can compute the answers of.
fn default_io_threads() -> NonZeroUsize {
    const CORES_PER_IO_THREAD: usize = 4;
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(cores / CORES_PER_IO_THREAD).unwrap_or(NonZeroUsize::MIN)
}

/// A server that accepts connections until it is stopped or dropped.
pub struct Server {
    address: SocketAddr,
    grpc_address: Option<SocketAddr>,
    serving: Arc<Serving>,
    stop: watch::Sender<bool>,
    threads: IoThreads,
    admin: Option<Admin>,
}

impl Server {
    /// Listens, and serves the models of the table with the engine; they come from the repository.
    pub fn start(
        options: &ServerOptions,
        engine: Arc<Engine>,
        models: Arc<ModelTable>,
        repository: Arc<dyn Repository>,
    ) -> Result<Self, StartError> {
        let tls = options.tls.as_ref().map(Tls::open).transpose()?.map(Arc::new);
        let main = listen(options.address, Protocols::HttpAndGrpc)?;
        let grpc = options.grpc_address.map(|at| listen(at, Protocols::GrpcOnly)).transpose()?;
        let (address, grpc_address) = (main.address, grpc.as_ref().map(|grpc| grpc.address));
        let admin = options.admin_address.map(Admin::listen).transpose()?;
        let spans = options.otlp_endpoint.as_deref().map(SpanExporter::start).transpose()?;
        let limits = options.limits.clone();
        let serving = Arc::new(Serving {
            engine,
            models,
            repository,
            wakes: Wakes::default(),
            door: Door::new(limits.requests_in_flight),
            regions: Regions::new(limits.regions),
            tenants: options.tenants.clone(),
            tls,
            spans: spans.map(Arc::new),
            room: Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS))),
            limits,
            tuning: options.tuning.clone(),
        });
        let (stop, stopped) = watch::channel(false);
        let listeners = std::iter::once(main).chain(grpc).collect();
        let threads = IoThreads::start(options.io_threads, listeners, serving.clone(), &stopped)?;
        let admin = admin.map(|admin| admin.start(serving.clone())).transpose()?;
        tracing::info!(%address, "listening");
        Ok(Self { address, grpc_address, serving, stop, threads, admin })
    }

    /// Where it listens for HTTP and gRPC.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens for gRPC alone.
    pub fn grpc_address(&self) -> Option<SocketAddr> {
        self.grpc_address
    }

    /// Where it listens for administration.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|admin| admin.address)
    }

    /// Accepts no more, ends what was accepted within [`Limits::drain`], and closes all connections. True where everything
    /// that was accepted was answered.
    pub fn stop(mut self) -> bool {
        let has_ended_all = self.end();
        tracing::info!(has_ended_all, "stopped");
        has_ended_all
    }

    fn end(&mut self) -> bool {
        self.serving.door.close();
        self.stop.send_replace(true);
        let has_ended_all = self.threads.join();
        self.admin.take();
        has_ended_all
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
