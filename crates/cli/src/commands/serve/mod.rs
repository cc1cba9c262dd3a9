//! `weft serve`: models in, an inference server out.

mod logging;
mod open_files;
mod opening;
mod signals;
mod sources;
mod watching;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use weft_cuda::Precision;
use weft_repository::{Repository, ServerSettings, Settings};
use weft_scheduler::policies::{self, KnownPolicy};
use weft_server::{Library, ModelTable, Server, ServerOptions};

use crate::device::DeviceName;
use crate::model_file::DimensionOptions;
use crate::progress;
use opening::Opened;
use sources::Sources;

#[derive(Args)]
pub(crate) struct Options {
    /// What to serve: a model repository, or ONNX files and zoo:NAME
    #[arg(required = true)]
    models: Vec<String>,
    /// The settings of the repository [default: weft.toml in its folder]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The device: cpu, cuda or cuda:NUMBER [default: as weft.toml says, else a GPU if there is one, else cpu]
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceName>,
    /// What models run at on a GPU: f16, bf16, tf32 or f32 [default: f16]
    #[arg(long, value_name = "PRECISION")]
    precision: Option<Precision>,
    #[command(flatten)]
    dimensions: DimensionOptions,
    /// Who runs where and when; `weft simulate --help` lists the policies [default: as weft.toml says, else weft]
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    policy: Option<&'static KnownPolicy>,
    /// The address to listen on [default: as weft.toml says, else 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    host: Option<IpAddr>,
    /// The port for HTTP and gRPC; 0 is any that is free [default: as weft.toml says, else 8000]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// A second port, for gRPC alone [default: as weft.toml says, else 8001; none where --port is given]
    #[arg(long, value_name = "PORT")]
    grpc_port: Option<u16>,
    /// Profiles that `weft profile` wrote; models that are not in it are measured
    #[arg(long, value_name = "FILE")]
    profiles: Option<PathBuf>,
    /// Where profiles that were measured are kept [default: weft in the cache folder of the user]
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The largest batch of models that say nothing of theirs
    #[arg(long, value_name = "ROWS", default_value_t = 8)]
    max_batch: u32,
    /// Threads that carry connections [default: one for every four cores]
    #[arg(long, value_name = "COUNT")]
    io_threads: Option<NonZeroUsize>,
    /// The most connections that are open at once [default: as weft.toml says, else 16384]
    #[arg(long, value_name = "COUNT")]
    max_connections: Option<usize>,
    /// The longest body of a request [default: as weft.toml says, else 64 MiB]
    #[arg(long, value_name = "BYTES")]
    max_body_bytes: Option<usize>,
    /// What is logged: a level, or levels by part of the program [default: as weft.toml says, else info]
    #[arg(long, value_name = "LEVELS")]
    log: Option<String>,
}

fn policy(name: &str) -> Result<&'static KnownPolicy, String> {
    let names = || policies::ALL.iter().map(|known| known.name).collect::<Vec<_>>().join(", ");
    policies::named(name).ok_or_else(|| format!("it is one of {}", names()))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let signals = signals::Signals::listen()?;
    let sources = Sources::named(&options.models, options.config.as_deref())?;
    let repository = sources.look()?;
    let settings = settings(&repository)?;
    logging::start(
        options.log.as_deref().unwrap_or(&settings.server.log),
        settings.server.log_format,
    )?;
    watching::tell_problems(&repository);

    let table = Arc::new(ModelTable::default());
    let Opened { engine, loader, budget_bytes } = opening::open(options, &settings, table.clone())?;
    let look = {
        let sources = sources.clone();
        Box::new(move || sources.look().map_err(|error| error.to_string()))
    };
    let library = Library::start(loader, engine.clone(), table.clone(), budget_bytes, look)?;
    let library = Arc::new(library);
    let server = Server::start(
        &server_options(options, &settings.server),
        engine,
        table.clone(),
        library.clone(),
    )?;
    library.apply(repository.clone())?;
    announce(&server, &table);
    let watch = watching::start(sources, repository, library)?;
    signals.wait();
    progress::note("stopping: what was accepted is ended first");
    drop(watch);
    if !server.stop() {
        progress::note("some requests had not ended in time");
    }
    Ok(())
}

/// What is agreed, or all that is wrong with it: nothing is served by settings that are wrong.
fn settings(repository: &Repository) -> Result<Settings> {
    let entry = &repository.settings;
    match &entry.settings {
        Some(settings) => Ok(settings.clone()),
        None => {
            let problems: Vec<String> = entry.problems.iter().map(ToString::to_string).collect();
            bail!("these settings cannot be used:\n{}", problems.join("\n"))
        }
    }
}

fn announce(server: &Server, table: &ModelTable) {
    let count = table.all().len();
    let models = if count == 1 { "model" } else { "models" };
    progress::note(format!(
        "serving {count} {models} on http://{}, HTTP and gRPC",
        server.address()
    ));
    if let Some(address) = server.grpc_address() {
        progress::note(format!("and on {address}, gRPC"));
    }
}

/// What the command line says wins over what the settings say.
fn server_options(options: &Options, settings: &ServerSettings) -> ServerOptions {
    let default = ServerSettings::default();
    let listen = settings.listen.or(default.listen).unwrap_or(([127, 0, 0, 1], 8000).into());
    let at = |port: u16| SocketAddr::new(options.host.unwrap_or(listen.ip()), port);
    let mut server = ServerOptions::new(at(options.port.unwrap_or(listen.port())));
    server.grpc_address = match (options.grpc_port, options.port, settings.grpc_listen) {
        (Some(port), ..) => Some(at(port)),
        (None, None, Some(grpc)) => Some(at(grpc.port())),
        (None, ..) => None,
    };
    server.io_threads = options.io_threads.unwrap_or(server.io_threads);
    let wanted = options.max_connections.unwrap_or(settings.max_connections as usize);
    let limits = &mut server.limits;
    limits.connections = open_files::room_for(wanted);
    if limits.connections < wanted {
        let room = limits.connections;
        progress::note(format!(
            "the system's limit on open files leaves room for {room} connections"
        ));
    }
    let body_bytes = usize::try_from(settings.max_body_bytes).unwrap_or(usize::MAX);
    limits.body_bytes = options.max_body_bytes.unwrap_or(body_bytes);
    limits.body_arrival = settings.read_timeout;
    limits.drain = settings.shutdown_timeout;
    server
}
