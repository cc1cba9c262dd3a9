//! `weft bench training`: inference beside a training job, left to themselves and bounded by `weft run`.

mod commands;
pub(super) mod inference;
mod interruption;
mod job;
pub(super) mod stand_in;
mod way;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use weft_cuda::CudaDevice;

use self::commands::Commands;
pub(crate) use self::interruption::Interrupted;
use self::interruption::Interruption;
use self::job::Job;
use self::way::Way;
use super::statistics::quantile;
use crate::device::{DeviceName, DeviceOptions};
use crate::duration;
use crate::model_file;
use crate::progress;
use crate::table::Table;
use crate::terminal;

/// How often a training job says its rate.
const WINDOW_S: f64 = 0.5;
/// How long a job may take until it is ready: kernels may have to be compiled and chosen.
const READY_LIMIT: Duration = Duration::from_secs(180);
/// How much longer than asked for a measurement may take.
const LATE_LIMIT: Duration = Duration::from_secs(60);

#[derive(Args)]
pub(crate) struct Options {
    /// The model that answers requests: an ONNX file, or zoo:NAME [default: zoo:resnet50 on a GPU, zoo:mobilenet_v2 on a
    /// CPU]
    #[arg(long)]
    model: Option<String>,
    #[command(flatten)]
    device: DeviceOptions,
    /// The time from one request to the next [default: 2ms on a GPU, 20ms on a CPU]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pace: Option<weft_scheduler::Span>,
    /// What training gets where it is bounded, in percent; inference gets the rest
    #[arg(long, value_name = "PERCENT", default_value_t = 30)]
    share: u32,
    /// The training job, a command that prints lines such as {"steps_per_s": 3.5} and runs until it is ended [default:
    /// ResNet-50 with PyTorch on a GPU, a stand-in with a thread on every core on a CPU]
    #[arg(long, value_name = "COMMAND")]
    training: Option<String>,
    /// Images of one step of the training job with PyTorch
    #[arg(long, value_name = "IMAGES", default_value_t = 64)]
    training_batch: usize,
    /// Seconds that each way is measured
    #[arg(long, default_value_t = 8.0)]
    seconds: f64,
    /// Rounds in which all ways have their turns
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    fn is_on_gpu(&self) -> bool {
        self.device.device != DeviceName::Cpu
    }

    fn model(&self) -> &str {
        let otherwise = if self.is_on_gpu() { "zoo:resnet50" } else { "zoo:mobilenet_v2" };
        self.model.as_deref().unwrap_or(otherwise)
    }

    fn pace_ms(&self) -> f64 {
        let otherwise = if self.is_on_gpu() { 2.0 } else { 20.0 };
        self.pace.map_or(otherwise, |pace| pace.us() * 1e-3)
    }

    fn check(&self) -> Result<()> {
        ensure!((1..100).contains(&self.share), "--share must be from 1 to 99 percent");
        ensure!(self.seconds > 0.0, "--seconds must be above 0");
        Duration::try_from_secs_f64(self.seconds).context("--seconds")?;
        ensure!(self.rounds > 0, "--rounds must be at least 1");
        ensure!(self.training_batch > 0, "--training-batch must be at least 1");
        let is_first = matches!(self.device.device, DeviceName::Cpu | DeviceName::Cuda(0));
        ensure!(
            is_first,
            "--device: this is measured on the first GPU; CUDA_VISIBLE_DEVICES says which that is"
        );
        let is_fit = self.is_on_gpu() || self.device.precision.is_none();
        ensure!(is_fit, "--precision is for GPUs; a CPU runs at f32");
        // The process that runs the model would say what is wrong a while later.
        if self.is_on_gpu() {
            CudaDevice::count()?;
        }
        model_file::load(&model_file::resolve(self.model())?)?;
        Ok(())
    }
}

/// What was measured of one way.
#[derive(Default)]
struct Measured {
    latencies_ms: Vec<f64>,
    steps_per_s: Vec<f64>,
}

impl Measured {
    /// Of all windows, which are equally long; `None` where nothing was trained.
    fn steps_per_s(&self) -> Option<f64> {
        let count = self.steps_per_s.len();
        (count > 0).then(|| self.steps_per_s.iter().sum::<f64>() / count as f64)
    }

    fn latency_ms(&self, share: f64) -> Option<f64> {
        (!self.latencies_ms.is_empty()).then(|| quantile(&self.latencies_ms, share))
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    options.check()?;
    let commands = Commands::new(options)?;
    let interruption = Interruption::listen()?;
    let ways = Way::all(options.is_on_gpu());
    let mut measured: Vec<Measured> = ways.iter().map(|_| Measured::default()).collect();
    for round in 0..options.rounds {
        for (way, measured) in ways.iter().zip(&mut measured) {
            progress::show(format!("round {} of {}: {}", round + 1, options.rounds, way.name()));
            let outcome = measure(options, &commands, &interruption, *way, measured);
            // Whatever failed after that failed for it.
            interruption.check()?;
            outcome.with_context(|| way.name().to_string())?;
        }
    }
    progress::clear();
    let text = match options.json {
        true => serde_json::to_string_pretty(&report(options, ways, &measured))?,
        false => table(ways, &measured).render(),
    };
    Ok(terminal::print(&text)?)
}

/// Runs the jobs of one way side by side for a while.
fn measure(
    options: &Options,
    commands: &Commands,
    interruption: &Interruption,
    way: Way,
    to: &mut Measured,
) -> Result<()> {
    let around = commands.surroundings(way)?;
    let training = way.trains().then(|| -> Result<Job> {
        let job = Job::start(commands.training(way, &around)?, "the training job", interruption)?;
        // Its first steps are slower than others.
        commands.rate(&job.next(READY_LIMIT).with_context(|| commands.training_hint())?)?;
        Ok(job)
    });
    let training = training.transpose()?;
    let inference = way.infers().then(|| -> Result<Job> {
        let mut job =
            Job::start(commands.inference(way, &around)?, "the inference process", interruption)?;
        job.next(READY_LIMIT)?;
        job.say("go")?;
        Ok(job)
    });
    let inference = inference.transpose()?;
    let length = Duration::from_secs_f64(options.seconds);
    let start = Instant::now();
    // What was said before belongs to another time.
    training.iter().for_each(Job::forget);
    match &inference {
        Some(job) => {
            let answer = job.next(length.saturating_add(LATE_LIMIT))?;
            let latencies = answer["latencies_ms"].as_array().context("no latencies")?;
            to.latencies_ms.extend(latencies.iter().filter_map(Value::as_f64));
        }
        None => interruption.sleep(length)?,
    }
    let Some(training) = training else { return Ok(()) };
    let mut lines = training.heard();
    // A window that began before the measurement counts only where there is no other.
    if lines.len() > 1 {
        lines.remove(0);
    }
    if lines.is_empty() {
        let limit = LATE_LIMIT.saturating_sub(start.elapsed().saturating_sub(length));
        lines.push(training.next(limit).context("no rate of training was heard meanwhile")?);
    }
    for line in lines {
        to.steps_per_s.push(commands.rate(&line)?);
    }
    Ok(())
}

fn table(ways: &[Way], measured: &[Measured]) -> Table {
    let alone = alone(ways, measured);
    let mut table = Table::new([
        "way",
        "inference p50, ms",
        "p99",
        "p99 / alone",
        "requests",
        "training, steps/s",
        "of alone",
    ]);
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(String::new, |value| format!("{value:.digits$}"))
    };
    let ratio = |value: Option<f64>, of: Option<f64>| Some(value? / of?);
    for (way, measured) in ways.iter().zip(measured) {
        let p99 = measured.latency_ms(0.99);
        let requests = measured.latencies_ms.len();
        table.row([
            way.name().to_string(),
            number(measured.latency_ms(0.5), 2),
            number(p99, 2),
            number(ratio(p99, alone.0), 2),
            if way.infers() { requests.to_string() } else { String::new() },
            number(measured.steps_per_s(), 2),
            number(ratio(measured.steps_per_s(), alone.1), 2),
        ]);
    }
    table
}

/// The tail of inference alone, and the rate of training alone.
fn alone(ways: &[Way], measured: &[Measured]) -> (Option<f64>, Option<f64>) {
    let of = |wanted: Way| ways.iter().zip(measured).find(|(way, _)| **way == wanted);
    (
        of(Way::InferenceAlone).and_then(|(_, measured)| measured.latency_ms(0.99)),
        of(Way::TrainingAlone).and_then(|(_, measured)| measured.steps_per_s()),
    )
}

fn report(options: &Options, ways: &[Way], measured: &[Measured]) -> Value {
    let (p99_alone, rate_alone) = alone(ways, measured);
    let ways: Vec<Value> = ways
        .iter()
        .zip(measured)
        .map(|(way, measured)| {
            let p99 = measured.latency_ms(0.99);
            let rate = measured.steps_per_s();
            json!({
                "way": way.name(),
                "latency_ms_p50": measured.latency_ms(0.5),
                "latency_ms_p99": p99,
                "p99_over_alone": p99.zip(p99_alone).map(|(p99, alone)| p99 / alone),
                "requests": measured.latencies_ms.len(),
                "steps_per_s": rate,
                "rate_over_alone": rate.zip(rate_alone).map(|(rate, alone)| rate / alone),
            })
        })
        .collect();
    json!({
        "device": options.device.device.to_string(),
        "model": options.model(),
        "pace_ms": options.pace_ms(),
        "training_share_percent": options.share,
        "seconds": options.seconds,
        "rounds": options.rounds,
        "ways": ways,
    })
}
