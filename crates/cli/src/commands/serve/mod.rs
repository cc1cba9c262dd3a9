//! `weft serve`: models in, an inference server out.

mod loading;
mod open_files;
mod signals;
mod sources;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use weft_engine::{Engine, EngineDevice};
use weft_scheduler::policies::{self, KnownPolicy};
use weft_server::{FixedRepository, Limits, ModelTable, Server, ServerOptions};

use crate::commands::profile::bandwidth;
use crate::device::DeviceOptions;
use crate::model_file::DimensionOptions;
use crate::progress;
use loading::Loader;

#[derive(Args)]
pub(crate) struct Options {
    /// What to serve: ONNX files, model repositories, or zoo:NAME
    #[arg(required = true)]
    models: Vec<String>,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    dimensions: DimensionOptions,
    /// Who runs where and when; `weft simulate --help` lists the policies
    #[arg(long, value_name = "POLICY", default_value = "weft", value_parser = policy)]
    policy: &'static KnownPolicy,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port for HTTP and gRPC; 0 is any that is free
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    port: u16,
    /// A second port, for gRPC alone
    #[arg(long, value_name = "PORT")]
    grpc_port: Option<u16>,
    /// Profiles that `weft profile` wrote; models that are not in it are measured
    #[arg(long, value_name = "FILE")]
    profiles: Option<PathBuf>,
    /// The largest batch that requests are run in
    #[arg(long, value_name = "ROWS", default_value_t = 8)]
    max_batch: u32,
    /// Threads that carry connections [default: one for every four cores]
    #[arg(long, value_name = "COUNT")]
    io_threads: Option<NonZeroUsize>,
    #[command(flatten)]
    limits: LimitOptions,
}

#[derive(Args)]
struct LimitOptions {
    /// The most connections that are open at once
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().connections)]
    max_connections: usize,
    /// The longest body of a request
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().body_bytes)]
    max_body_bytes: usize,
}

fn policy(name: &str) -> Result<&'static KnownPolicy, String> {
    let names = || policies::ALL.iter().map(|known| known.name).collect::<Vec<_>>().join(", ");
    policies::named(name).ok_or_else(|| format!("it is one of {}", names()))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let signals = signals::Signals::listen()?;
    let sources = sources::named(&options.models)?;
    let profiles = options.profiles.as_deref().map(loading::read_profiles).transpose()?;
    let device = options.device.open()?;
    let bandwidth_bytes_per_s = match &profiles {
        Some(profiles) => profiles.device.bandwidth_bytes_per_s,
        None => bandwidth::bytes_per_s(None, &device)?,
    };
    let units = device.units();
    let device = device.into_device();
    let memory_bytes = device.description().memory_bytes;
    let loader = Loader {
        device: &*device,
        units: &units,
        dimensions: options.dimensions.sizes(1),
        largest_batch: options.max_batch.max(1),
        profiles: profiles.as_ref(),
    };
    let loaded = sources.iter().map(|source| loader.load(source)).collect::<Result<Vec<_>>>()?;
    let (models, entries): (Vec<_>, Vec<_>) = loaded.into_iter().unzip();

    let table = Arc::new(ModelTable::default());
    let on = EngineDevice {
        device: device.clone(),
        units: units.clone(),
        bandwidth_bytes_per_s,
        uses_background: true,
        memory_bytes: memory_bytes.context("how much memory the device has is not known")?,
    };
    let known = options.policy;
    let engine = Engine::start(on, Box::new(move |served| known.make(served)), table.clone())?;
    let engine = Arc::new(engine);
    engine.serve(models)?;
    let count = entries.len();
    let repository = Arc::new(FixedRepository::new(table.clone(), entries));
    let server = Server::start(&server_options(options), engine, table, repository)?;
    progress::note(format!(
        "serving {count} {} on http://{}, HTTP and gRPC",
        if count == 1 { "model" } else { "models" },
        server.address()
    ));
    if let Some(address) = server.grpc_address() {
        progress::note(format!("and on {address}, gRPC"));
    }
    signals.wait();
    progress::note("stopping: what was accepted is ended first");
    if !server.stop() {
        progress::note("some requests had not ended in time");
    }
    Ok(())
}

fn server_options(options: &Options) -> ServerOptions {
    let mut server = ServerOptions::new(SocketAddr::new(options.host, options.port));
    server.grpc_address = options.grpc_port.map(|port| SocketAddr::new(options.host, port));
    server.io_threads = options.io_threads.unwrap_or(server.io_threads);
    let wanted = options.limits.max_connections;
    server.limits.connections = open_files::room_for(wanted);
    if server.limits.connections < wanted {
        let room = server.limits.connections;
        progress::note(format!(
            "the system's limit on open files leaves room for {room} connections"
        ));
    }
    server.limits.body_bytes = options.limits.max_body_bytes;
    server
}
