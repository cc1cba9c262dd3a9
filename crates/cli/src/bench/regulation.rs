//! `weft bench regulation`: mixes of different models, regulated and in other ways.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::{Value as Json, json};
use weft_engine::regulation::{Outcome, Way};
use weft_scheduler::Span;
use weft_scheduler::regulate::Strategy;

use super::gpu::torch::Torch;
use super::peer;
use super::statistics::{geometric_mean, median};
use crate::device::{DeviceOptions, OpenDevice};
use crate::duration;
use crate::kernel_options::KernelOptions;
use crate::model_file::DimensionOptions;
use crate::progress;
use crate::regulation::{Budget, MixedModel, Place, Subject, outcome_json};
use crate::table::Table;
use crate::terminal;

/// The mixes of a GPU where none is named.
const GPU_MIXES: &[&str] = &[
    "resnet50+vgg16+mobilenet_v3_large",
    "resnet50+resnet18+bert_base",
    "vgg16+resnet18+mobilenet_v2",
    "resnet50+vgg16+mobilenet_v3_large+bert_base+densenet121",
];

/// The mixes of a CPU where none is named.
const CPU_MIXES: &[&str] =
    &["resnet18+mobilenet_v2", "resnet18+minilm_l6", "resnet18+minilm_l6+mobilenet_v3_large"];

/// The batch of every model where none is given.
const GPU_BATCH: usize = 8;
const CPU_BATCH: usize = 1;

const ABOUT: &str = "\
Each mix is searched from the beginning: schedules in the tuning database are not
used, and none are kept there. `weft regulate` does both.";

#[derive(Args)]
#[command(after_help = ABOUT)]
pub(crate) struct Options {
    /// Mixes: models of the zoo joined by + [default: four of three to five models on a GPU, three of two and three on a CPU]
    mixes: Vec<String>,
    #[command(flatten)]
    device: DeviceOptions,
    /// How many cores of a CPU the mixes have [default: all]
    #[arg(long, value_name = "COUNT")]
    cores: Option<usize>,
    /// The batch of every model [default: 8 on a GPU, 1 on a CPU]
    #[arg(long)]
    batch: Option<usize>,
    /// How long to search for each mix, after its steps were timed; a number without a unit is seconds
    #[arg(long, value_name = "TIME", value_parser = duration::parse_or_seconds, default_value = "20s")]
    budget: Span,
    /// Search as the paper does, by coordinate descent from even shares
    #[arg(long)]
    coordinate_descent: bool,
    /// Rounds in which all ways have their turns
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    #[command(flatten)]
    kernels: KernelOptions,
    #[command(flatten)]
    dimensions: DimensionOptions,
    /// Run the same models in PyTorch on a GPU too, as CUDA graphs: one after another and in streams; `WEFT_PYTHON` names a Python
    /// with torch, torchvision and transformers
    #[arg(long)]
    torch: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs of PyTorch that do not count, and those that a median is taken of.
const TORCH_RUNS: (usize, usize) = (5, 51);

/// What became of a mix.
struct Found {
    mix: String,
    outcome: Outcome,
    torch: Option<TorchTimes>,
}

/// How long PyTorch takes for it, in milliseconds.
struct TorchTimes {
    in_turns_ms: f64,
    in_streams_ms: f64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.batch != Some(0), "--batch must be at least 1");
    let time = Duration::from_nanos(options.budget.nanos());
    ensure!(options.rounds > 0, "--rounds must be at least 1");
    let opened = options.device.open_choosing(options.kernels)?;
    ensure!(
        !options.torch || matches!(opened, OpenDevice::Cuda(_)),
        "--torch compares on a GPU; give --device cuda"
    );
    let mut torch = options.torch.then(|| Torch::start(&peer::python())).transpose()?;
    let units = opened.first_units(options.cores)?;
    let precision = opened.precision().name();
    let on = opened.in_words(&units);
    let (usual, usual_batch) = match &opened {
        OpenDevice::Cpu(_) => (CPU_MIXES, CPU_BATCH),
        OpenDevice::Cuda(_) => (GPU_MIXES, GPU_BATCH),
    };
    let batch = options.batch.unwrap_or(usual_batch);
    let place = Place { device: opened.as_device(), units: &units };
    let outcomes = outcomes(options, (usual, batch), time, place, torch.as_mut())?;
    progress::clear();
    if options.json {
        let values: Vec<Json> = outcomes.iter().map(value).collect();
        return Ok(terminal::print(&serde_json::to_string_pretty(&values)?)?);
    }
    let at_once = outcomes.first().map_or("at once", |found| found.outcome.name(Way::AtOnce));
    let shared = outcomes.iter().any(|found| found.outcome.lockstep.is_some());
    let shared = shared.then_some("shared launches");
    let mut header = vec![
        "mix",
        "one after another, ms",
        at_once,
        "even partitions",
        "coordinate descent",
        "regulated",
        "x one after another",
        "x better other",
        "predicted",
        "segments",
        "run",
        "settled, s",
    ];
    header.extend(shared);
    let mut table = Table::new(header);
    for Found { mix, outcome, .. } in &outcomes {
        let ms = |way: Way| format!("{:.3}", outcome.time_us(way) / 1e3);
        let mut row = vec![
            mix.to_string(),
            ms(Way::InTurns),
            ms(Way::AtOnce),
            ms(Way::EvenPartitions),
            format!("{:.3}", outcome.coordinate_descent_us / 1e3),
            ms(Way::Regulated),
            format!("{:.2}", gain(outcome)),
            format!("{:.2}", gain_over_better(outcome)),
            format!("{:.3}", outcome.predicted_us / 1e3),
            outcome.schedule.segments.len().to_string(),
            outcome.measured.to_string(),
            format!("{:.1}", outcome.settled().as_secs_f64()),
        ];
        let was_run = outcome.lockstep.is_some();
        row.extend(shared.map(|_| if was_run { ms(Way::SharedLaunches) } else { String::new() }));
        table.row(row);
    }
    let mut text = format!("batch {batch}, {precision}, on {on}:\n{}\n", table.render());
    let means = [gain, gain_over_better]
        .map(|gain| outcomes.iter().map(|found| gain(&found.outcome)).collect::<Vec<f64>>())
        .map(|gains| geometric_mean(&gains));
    text += &format!(
        "geometric means: {:.2} times one after another, {:.2} times the better of {at_once} and even partitions",
        means[0], means[1]
    );
    if let Some(torch) = torch {
        text += &format!("\n{}", beside_torch(&outcomes, &torch.version));
    }
    Ok(terminal::print(&text)?)
}

/// The same mixes in PyTorch.
fn beside_torch(outcomes: &[Found], version: &str) -> String {
    let mut table =
        Table::new(["mix", "graphs one after another, ms", "in streams", "regulated", "x better"]);
    for Found { mix, outcome, torch } in outcomes {
        let Some(TorchTimes { in_turns_ms, in_streams_ms }) = torch else { continue };
        let regulated_ms = outcome.time_us(Way::Regulated) / 1e3;
        table.row([
            mix.to_string(),
            format!("{in_turns_ms:.3}"),
            format!("{in_streams_ms:.3}"),
            format!("{regulated_ms:.3}"),
            format!("{:.2}", in_turns_ms.min(*in_streams_ms) / regulated_ms),
        ]);
    }
    format!("PyTorch {version}, CUDA graphs, f16:\n{}", table.render())
}

/// What became of each mix.
fn outcomes(
    options: &Options,
    (usual, batch): (&[&str], usize),
    time: Duration,
    place: Place<'_>,
    mut torch: Option<&mut Torch>,
) -> Result<Vec<Found>> {
    let strategy = match options.coordinate_descent {
        true => Strategy::CoordinateDescent,
        false => Strategy::Descents,
    };
    let budget = Budget { time, strategy, rounds: options.rounds };
    let mixes: Vec<String> = match options.mixes.is_empty() {
        true => usual.iter().map(|mix| mix.to_string()).collect(),
        false => options.mixes.clone(),
    };
    let named = |name: &str| format!("zoo:{}", name.trim_start_matches("zoo:"));
    let models = |mix: &String| -> Vec<MixedModel> {
        mix.split('+').map(|name| MixedModel { name: named(name), batch }).collect()
    };
    let all: Vec<Vec<MixedModel>> = mixes.iter().map(models).collect();
    options.dimensions.check(all.iter().flatten().map(|model| &*model.name))?;
    let mut outcomes = Vec::new();
    for (mix, models) in mixes.into_iter().zip(all) {
        let subject = Subject::new(&models, &options.dimensions, place, budget)?;
        let input_shapes = subject.input_shapes().to_vec();
        let outcome = subject.regulated(None)?;
        progress::note(format!("{mix}: regulated {:.3} ms", outcome.time_us(Way::Regulated) / 1e3));
        if let Some(why) = &outcome.unshared {
            progress::note(format!("{mix}: shared launches could not be compiled: {why}"));
        }
        let torch = match &mut torch {
            Some(torch) => Some(torch_times(torch, &mix, &input_shapes)?),
            None => None,
        };
        outcomes.push(Found { mix, outcome, torch });
    }
    Ok(outcomes)
}

fn torch_times(torch: &mut Torch, mix: &str, input_shapes: &[Vec<usize>]) -> Result<TorchTimes> {
    progress::show(format!("{mix} in PyTorch"));
    let shapes = input_shapes.iter().map(Vec::as_slice);
    let models: Vec<(&str, &[usize])> = mix.split('+').zip(shapes).collect();
    let mut median_ms = |is_in_streams| {
        Ok::<f64, anyhow::Error>(median(&torch.mix_times_ms(&models, is_in_streams, TORCH_RUNS)?))
    };
    Ok(TorchTimes { in_turns_ms: median_ms(false)?, in_streams_ms: median_ms(true)? })
}

fn gain(outcome: &Outcome) -> f64 {
    outcome.time_us(Way::InTurns) / outcome.time_us(Way::Regulated)
}

fn gain_over_better(outcome: &Outcome) -> f64 {
    let better = outcome.time_us(Way::AtOnce).min(outcome.time_us(Way::EvenPartitions));
    better / outcome.time_us(Way::Regulated)
}

fn value(Found { mix, outcome, torch }: &Found) -> Json {
    let mut value = outcome_json(outcome);
    if let Some(TorchTimes { in_turns_ms, in_streams_ms }) = torch {
        value["torch_ms"] = json!({"one_after_another": in_turns_ms, "streams": in_streams_ms});
    }
    value["mix"] = json!(mix);
    value["gain"] = json!(gain(outcome));
    value["gain_over_better"] = json!(gain_over_better(outcome));
    value
}
