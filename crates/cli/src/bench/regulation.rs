//! `weft bench regulation`: mixes of different models, regulated and in other ways.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::Args;
use serde_json::{Value as Json, json};
use weft_scheduler::regulate::Strategy;

use super::statistics::geometric_mean;
use crate::device::{DeviceOptions, OpenDevice};
use crate::kernel_options::KernelOptions;
use crate::model_file::DimensionOptions;
use crate::progress;
use crate::regulation::{Budget, MixedModel, Outcome, Subject, Way, outcome_json, regulate};
use crate::table::Table;

/// The mixes where none is named.
const MIXES: [&str; 4] = [
    "resnet50+vgg16+mobilenet_v3_large",
    "resnet50+resnet18+bert_base",
    "vgg16+resnet18+mobilenet_v2",
    "resnet50+vgg16+mobilenet_v3_large+bert_base+densenet121",
];

#[derive(Args)]
pub(crate) struct Options {
    /// Mixes: models of the zoo joined by +
    mixes: Vec<String>,
    #[command(flatten)]
    device: DeviceOptions,
    /// The batch of every model
    #[arg(long, default_value_t = 8)]
    batch: usize,
    /// How long to search for each mix, in seconds, after its steps were timed
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0)]
    budget: f64,
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
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.batch > 0, "--batch must be at least 1");
    ensure!(options.budget > 0.0, "--budget must be more than 0");
    let OpenDevice::Cuda(device) = options.device.open_choosing(options.kernels)? else {
        bail!("mixes are regulated on GPUs; give --device cuda");
    };
    let device = Arc::new(device);
    let strategy = match options.coordinate_descent {
        true => Strategy::CoordinateDescent,
        false => Strategy::Descents,
    };
    let budget =
        Budget { time: Duration::from_secs_f64(options.budget), strategy, rounds: options.rounds };
    let mixes: Vec<String> = match options.mixes.is_empty() {
        true => MIXES.map(String::from).to_vec(),
        false => options.mixes.clone(),
    };
    let mut outcomes = Vec::new();
    for mix in &mixes {
        let model = |name: &str| MixedModel { name: format!("zoo:{name}"), batch: options.batch };
        let models: Vec<MixedModel> = mix.split('+').map(model).collect();
        let mut subject = Subject::new(&device, &models, &options.dimensions)?;
        let start = Instant::now();
        let timed = subject.timed()?;
        let outcome = regulate(&mut subject, &timed, budget, start.elapsed())?;
        progress::note(format!("{mix}: regulated {:.3} ms", outcome.time_us(Way::Regulated) / 1e3));
        outcomes.push((mix, outcome));
    }
    progress::clear();
    if options.json {
        let values: Vec<Json> = outcomes.iter().map(|(mix, outcome)| value(mix, outcome)).collect();
        println!("{}", serde_json::to_string_pretty(&values)?);
        return Ok(());
    }
    let mut table = Table::new([
        "mix",
        "one after another, ms",
        "streams",
        "even partitions",
        "regulated",
        "x one after another",
        "x better other",
        "predicted",
        "segments",
        "run",
        "settled, s",
    ]);
    for (mix, outcome) in &outcomes {
        let ms = |way: Way| format!("{:.3}", outcome.time_us(way) / 1e3);
        table.row([
            mix.to_string(),
            ms(Way::InTurns),
            ms(Way::Streams),
            ms(Way::EvenPartitions),
            ms(Way::Regulated),
            format!("{:.2}", gain(outcome)),
            format!("{:.2}", gain_over_better(outcome)),
            format!("{:.3}", outcome.predicted_us / 1e3),
            outcome.schedule.segments.len().to_string(),
            outcome.measured.to_string(),
            format!("{:.1}", outcome.settled().as_secs_f64()),
        ]);
    }
    println!("batch {}, {}:", options.batch, device.precision().name());
    println!("{}", table.render());
    let means = [gain, gain_over_better]
        .map(|gain| geometric_mean(&outcomes.iter().map(|(_, of)| gain(of)).collect::<Vec<_>>()));
    println!(
        "geometric means: {:.2} times one after another, {:.2} times the better of streams and even partitions",
        means[0], means[1]
    );
    Ok(())
}

fn gain(outcome: &Outcome) -> f64 {
    outcome.time_us(Way::InTurns) / outcome.time_us(Way::Regulated)
}

fn gain_over_better(outcome: &Outcome) -> f64 {
    let better = outcome.time_us(Way::Streams).min(outcome.time_us(Way::EvenPartitions));
    better / outcome.time_us(Way::Regulated)
}

fn value(mix: &str, outcome: &Outcome) -> Json {
    let mut value = outcome_json(outcome);
    value["mix"] = json!(mix);
    value["gain"] = json!(gain(outcome));
    value["gain_over_better"] = json!(gain_over_better(outcome));
    value
}
