//! `weft serve`: models in, an inference server out.

mod listening;
mod logging;
mod open_files;
mod opening;
mod schedules;
mod signals;
mod sources;
mod watching;

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use clap::{Args, value_parser};
use weft_cuda::Precision;
use weft_repository::{Repository, Settings};
use weft_scheduler::policies::{self, KnownPolicy};
use weft_server::{KernelTuning, Library, ModelTable, Server, ServerOptions, Tenants, TuningHost};

use crate::device::DeviceName;
use crate::model_file::DimensionOptions;
use crate::progress;
use crate::tuning::TuningOptions;
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
    #[command(flatten)]
    tuning: TuningOptions,
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
    /// The port for metrics, status and traces, on loopback unless weft.toml says otherwise [default: as weft.toml says,
    /// else 8002; none where --port is given]
    #[arg(long, value_name = "PORT")]
    admin_port: Option<u16>,
    /// Answer everybody who reaches the server, also from other machines, where no key is sent
    #[arg(long)]
    anonymous: bool,
    /// Profiles that `weft profile` wrote; models that are not in it are measured
    #[arg(long, value_name = "FILE")]
    profiles: Option<PathBuf>,
    /// Where profiles that were measured are kept [default: weft in the cache folder of the user]
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The largest batch of models that say nothing of theirs
    #[arg(long, value_name = "ROWS", default_value_t = 8, value_parser = value_parser!(u32).range(1..))]
    max_batch: u32,
    /// Serve models that differ in their weights alone apart from each other, whatever weft.toml says
    #[arg(long)]
    no_groups: bool,
    /// Run requests for different models that come together one after another, whatever weft.toml says
    #[arg(long)]
    no_regulation: bool,
    /// Threads that carry connections [default: one for every four cores]
    #[arg(long, value_name = "COUNT")]
    io_threads: Option<NonZeroUsize>,
    /// The most connections that are open at once [default: as weft.toml says, else 16384]
    #[arg(long, value_name = "COUNT")]
    max_connections: Option<NonZeroUsize>,
    /// The longest body of a request [default: as weft.toml says, else 64 MiB]
    #[arg(long, value_name = "BYTES")]
    max_body_bytes: Option<NonZeroUsize>,
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
    let settings = listening::with_options(settings(&repository)?, options);
    let exposures = settings.exposures();
    ensure!(exposures.is_empty(), "not served like this:\n{}", exposures.join("\n"));
    logging::start(
        options.log.as_deref().unwrap_or(&settings.server.log),
        settings.server.log_format,
    )?;
    watching::tell_problems(&repository);

    let table = Arc::new(ModelTable::default());
    let opened = opening::open(options, &settings, table.clone())?;
    let Opened { engine, loader, budget_bytes, tunable: device, units } = opened;
    let look = {
        let sources = sources.clone();
        Box::new(move || sources.look().map_err(|error| error.to_string()))
    };
    let library = Library::start(loader, engine.clone(), table.clone(), budget_bytes, look)?;
    let library = Arc::new(library);
    let tenants = Arc::new(Tenants::new(&settings));
    let tuning = options.tuning.database().map(|database| {
        let (engine, library) = (engine.clone(), library.clone());
        Arc::new(KernelTuning::new(TuningHost { engine, library, device, units, database }))
    });
    let server = Server::start(
        &ServerOptions {
            tuning: tuning.clone(),
            ..listening::server_options(options, &settings.server, tenants.clone())
        },
        engine,
        table.clone(),
        library.clone(),
    )?;
    library.apply(repository.clone())?;
    announce(&server, &table, settings.server.tls.is_some());
    let watch =
        watching::start(sources, repository, library, listening::follower(options, tenants))?;
    signals.wait();
    progress::note("stopping: what was accepted is ended first");
    drop(watch);
    tuning.iter().for_each(|tuning| tuning.end());
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

fn announce(server: &Server, table: &ModelTable, is_private: bool) {
    let scheme = if is_private { "https" } else { "http" };
    let count = table.all().len();
    let models = if count == 1 { "model" } else { "models" };
    progress::note(format!(
        "serving {count} {models} on {scheme}://{}, HTTP and gRPC",
        server.address()
    ));
    if let Some(address) = server.grpc_address() {
        progress::note(format!("and on {address}, gRPC"));
    }
    if let Some(address) = server.admin_address() {
        progress::note(format!("metrics, status and traces on http://{address}"));
    }
}
