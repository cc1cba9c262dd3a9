//! `weft load`: requests for a server at the instants they are due, and what became of them.

mod capacity;
mod json;
mod model_options;
mod picture;
mod tables;
mod workload;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use weft_load::{
    AnswerCheck, CapacityOptions, LoadError, ModelLoad, Outcome, Progress, Protocol, RunOptions,
    Session, SessionOptions, Target,
};
use weft_scheduler::Span;

use crate::{files, progress, terminal};
use model_options::ModelOptions;

/// Where a key is looked for that is not given, so that it need not be seen among the arguments of processes.
const KEY_VARIABLE: &str = "WEFT_API_KEY";
/// What ends a run in which nothing was answered, or nobody was there to answer.
const NOTHING_ANSWERED: u8 = 1;
/// How many connections there are where nobody says.
const HTTP_CONNECTIONS: usize = 128;
const GRPC_CONNECTIONS: usize = 4;
/// The most that may be asked for.
const MAX_CONNECTIONS: i64 = 20_000;
const MAX_THREADS: i64 = 256;
/// The generator shares its cores with the server: where nobody says, it has one thread for so many.
const CORES_PER_THREAD: usize = 4;

const EXAMPLES: &str = "\
Examples:
  # 30 requests a second that wait for nobody, beside four clients that always wait for their answers
  weft load localhost:8000 --model mobilenet_v2 --rate 30 --slo 50ms --model resnet50 --concurrency 4
  # bursts, over gRPC, with a report to look at
  weft load localhost:8001 --protocol grpc --model minilm_l6 --rate 20 --cv 2 --dimension 128 --svg report.svg
  # the highest rates at which 99 % of the requests are answered in time
  weft load localhost:8000 --workload mix.toml --find-capacity --seconds 20

Latency counts from the instant a request is due. Ctrl-C ends a run and still reports. Exit code 1 where nothing
was answered or nobody listens, 2 for bad input.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The server: host:port, with http:// or grpc:// before it or not
    url: String,
    #[command(flatten)]
    models: ModelOptions,
    /// A TOML file of models instead; see docs/load.md
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    workload: Option<PathBuf>,
    #[arg(long, value_enum)]
    protocol: Option<NamedProtocol>,
    /// How long requests come that count; with --find-capacity in each step [default: 10]
    #[arg(long)]
    seconds: Option<f64>,
    /// How long requests come before, which do not count
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    warm_up: f64,
    /// What arrivals and inputs are drawn from [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// What the server knows the caller by [default: the environment's WEFT_API_KEY]
    #[arg(long, value_name = "KEY")]
    api_key: Option<String>,
    /// The most connections; where all are busy, requests wait and their latency counts on [default: 128, gRPC 4]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=MAX_CONNECTIONS))]
    connections: Option<u32>,
    /// The most threads that send requests, each with its share of the connections [default: one for every four cores]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=MAX_THREADS))]
    threads: Option<u32>,
    /// Answers to equal inputs must be equal to the bit, or f32 numbers to within a share (--check=1e-4)
    #[arg(
        long,
        value_name = "TOLERANCE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0"
    )]
    check: Option<f32>,
    /// Tensors travel through memory that is shared with the server, which is on this machine
    #[arg(long)]
    shared_memory: bool,
    /// Search the highest rates at which --target of the requests are answered in time
    #[arg(long, conflicts_with = "svg")]
    find_capacity: bool,
    /// The share of requests in time that is searched for
    #[arg(long, value_name = "SHARE", default_value_t = 0.99, requires = "find_capacity")]
    target: f64,
    /// How close the search comes: 0.05 for 5 %
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, requires = "find_capacity")]
    precision: f64,
    /// Write the results as JSON to this file, or to the standard output instead of the tables (-)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also draw the results as an SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// What requests are written in.
#[derive(Clone, Copy, ValueEnum)]
enum NamedProtocol {
    Http,
    Grpc,
}

/// What is to be run, and where.
struct Task {
    target: Target,
    models: Vec<ModelLoad>,
    session: SessionOptions,
    run: RunOptions,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let task = options.task()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = match options.find_capacity {
        true => runtime.block_on(capacity::run(task, options)),
        false => runtime.block_on(run_once(task, options)),
    };
    match ended {
        // Nothing was wrong with what was asked for: whoever waits for a server may ask again.
        Err(error) if is_of_connection(&error) => {
            progress::note(format!("weft: {error}"));
            Ok(ExitCode::from(NOTHING_ANSWERED))
        }
        ended => ended,
    }
}

fn is_of_connection(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(LoadError::Connection { .. }))
}

async fn run_once(task: Task, options: &Options) -> Result<ExitCode> {
    let Some(mut session) = open(&task).await? else {
        return Ok(ExitCode::from(NOTHING_ANSWERED));
    };
    let outcome = session.run(&task.run, &mut |done| show("", done), &mut interruption).await?;
    progress::clear();
    let report = json::report(&task, &outcome);
    if let Some(path) = &options.svg {
        files::write(path, &picture::svg(&task, &outcome))?;
    }
    finish(options, &report, &tables::report(&task, &outcome))?;
    Ok(match outcome.total().answered {
        0 => ExitCode::from(NOTHING_ANSWERED),
        _ => ExitCode::SUCCESS,
    })
}

/// Settles with the server what is asked; none where somebody presses Ctrl-C meanwhile.
async fn open(task: &Task) -> Result<Option<Session>> {
    let opened = Session::open(task.target.clone(), task.models.clone(), task.session);
    tokio::select! {
        biased;
        () = interruption() => {
            progress::note("weft: interrupted before the first request");
            Ok(None)
        }
        opened = opened => Ok(Some(opened?)),
    }
}

/// Writes the report for machines where it was asked for, and prints the one for people unless the other goes there.
fn finish(options: &Options, report: &serde_json::Value, text: &str) -> Result<()> {
    match &options.json {
        Some(path) if path == Path::new("-") => {
            return Ok(terminal::print(&format!("{report:#}"))?);
        }
        Some(path) => files::write(path, &format!("{report:#}\n"))?,
        None => {}
    }
    Ok(terminal::print(text)?)
}

/// Returns when somebody presses Ctrl-C.
async fn interruption() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

fn show(what: &str, done: &Progress) {
    let Progress { elapsed, length, due, answered, in_flight, waiting } = *done;
    let (elapsed, length) = (elapsed.seconds(), length.seconds());
    progress::show(format!(
        "{what}{elapsed:.0} of {length:.0} s: {due} due, {answered} answered, {in_flight} in flight, {waiting} wait"
    ));
}

impl Options {
    fn task(&self) -> Result<Task> {
        let protocol = self.protocol.map(|protocol| match protocol {
            NamedProtocol::Http => Protocol::Http,
            NamedProtocol::Grpc => Protocol::Grpc,
        });
        let mut target = Target::parse(&self.url, protocol)?;
        let key = self.api_key.clone().or_else(|| std::env::var(KEY_VARIABLE).ok());
        target.api_key = key.filter(|key| !key.is_empty());
        let is_text = |key: &String| key.bytes().all(|byte| byte.is_ascii_graphic());
        ensure!(target.api_key.as_ref().is_none_or(is_text), "the API key is not plain text");
        let (models, length, seed) = match &self.workload {
            Some(path) => {
                let workload = workload::read(path)?;
                (workload.models, workload.length, workload.seed)
            }
            None => {
                let models = self.models.0.iter().map(|model| model.load());
                let models: Result<Vec<ModelLoad>, String> = models.collect();
                (models.map_err(anyhow::Error::msg)?, None, None)
            }
        };
        if models.is_empty() {
            bail!(
                "nothing is asked for: give --model with --rate, --concurrency or --trace, or --workload"
            );
        }
        let length = self.seconds.map(Span::from_s).or(length).unwrap_or(Span::from_s(10.0));
        ensure!(length > Span::ZERO, "--seconds must be a number above 0");
        ensure!(self.warm_up >= 0.0 && self.warm_up.is_finite(), "--warm-up must be at least 0");
        for (share, option) in [(self.target, "--target"), (self.precision, "--precision")] {
            ensure!(share > 0.0 && share <= 1.0, "{option} must be a share up to 1");
        }
        let default = match target.protocol {
            Protocol::Http => HTTP_CONNECTIONS,
            Protocol::Grpc => GRPC_CONNECTIONS,
        };
        let connections = self.connections.map_or(default, |connections| connections as usize);
        let seed = self.seed.or(seed).unwrap_or(1);
        let check = match self.check {
            None => AnswerCheck::Size,
            Some(0.0) => AnswerCheck::Bits,
            Some(tolerance) => AnswerCheck::Close(tolerance),
        };
        ensure!(self.check.is_none_or(|share| share >= 0.0), "--check must be at least 0");
        let shared_memory = self.shared_memory;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.map_or(cores / CORES_PER_THREAD, |threads| threads as usize);
        let threads = threads.clamp(1, connections);
        let session = SessionOptions { connections, threads, seed, check, shared_memory };
        let run = RunOptions { length, warm_up: Span::from_s(self.warm_up), seed, factor: 1.0 };
        Ok(Task { target, models, session, run })
    }

    fn capacity(&self) -> CapacityOptions {
        CapacityOptions { target: self.target, precision: self.precision }
    }
}

impl Task {
    /// What is run where, in words.
    fn title(&self, outcome: &Outcome) -> String {
        let Target { address, protocol, .. } = &self.target;
        let seconds = outcome.length.seconds();
        let interrupted = if outcome.is_interrupted { ", interrupted" } else { "" };
        let memory = if self.session.shared_memory { " and shared memory" } else { "" };
        let seed = self.run.seed;
        format!("{address} over {protocol}{memory}, {seconds:.1} s{interrupted}, seed {seed}")
    }
}
