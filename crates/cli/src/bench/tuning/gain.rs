//! `weft bench tuning-gain`: what models gain when their kernels are tuned for the partition that they run on.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use weft_device::KernelChoices;
use weft_tuner::choices::Choices;
use weft_tuner::database::Database;

use super::child::{self, Thoroughness};
use crate::bench::statistics::geometric_mean;
use crate::device::{DeviceName, DeviceOptions, OpenDevice};
use crate::model_file::DimensionOptions;
use crate::progress;
use crate::table::Table;
use crate::terminal;
use crate::tuning::{Contest, ContestSettings, KernelSet, ModelSelection};

/// How tuned and untuned are compared.
const COMPARISON: ContestSettings =
    ContestSettings { preparations: 3, rounds: 5, time: Duration::from_millis(30) };

/// The models of the zoo that a share of a device is usually made for.
const USUAL: [&str; 12] = [
    "zoo:resnet18",
    "zoo:resnet50",
    "zoo:vgg16",
    "zoo:mobilenet_v2",
    "zoo:mobilenet_v3_large",
    "zoo:squeezenet1_1",
    "zoo:densenet121",
    "zoo:inception_v3",
    "zoo:efficientnet_b0",
    "zoo:bert_base",
    "zoo:minilm_l6",
    "zoo:vit_b_16",
];

#[derive(Args)]
pub(crate) struct Options {
    /// The models: ONNX files, or zoo:NAME [default: twelve of the zoo]
    models: Vec<String>,
    /// Batch sizes
    #[arg(long, value_delimiter = ',', default_value = "1")]
    batches: Vec<usize>,
    #[command(flatten)]
    dimensions: DimensionOptions,
    #[command(flatten)]
    device: DeviceOptions,
    /// The size of the partitions, in cores of a CPU [default: 1]
    #[arg(long)]
    cores: Option<usize>,
    /// The size of the partitions, in SMs of a GPU [default: all]
    #[arg(long)]
    sms: Option<usize>,
    #[command(flatten)]
    thoroughness: Thoroughness,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// One model at one batch size.
struct Gain {
    model: String,
    batch: usize,
    untuned_us: f64,
    tuned_us: f64,
    tuning_s: f64,
}

impl Gain {
    fn factor(&self) -> f64 {
        self.untuned_us / self.tuned_us
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let usual = || USUAL.map(str::to_string).to_vec();
    let models = if options.models.is_empty() { usual() } else { options.models.clone() };
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let device = options.device.open()?;
    let mut gains = Vec::new();
    for (place, model) in models.iter().enumerate() {
        progress::show(format!("{model}, {} of {}", place + 1, models.len()));
        let database = folder.path().join(format!("{place}.db"));
        let gained = tune(options, model, &database)
            .and_then(|tuned| compare(options, &device, model, &tuned, &database));
        gains.extend(gained.with_context(|| model.clone())?);
    }
    progress::clear();
    report(options, &gains)
}

/// What a run of `weft tune` says of itself.
struct Tuned {
    size: usize,
    tuning_s: f64,
}

/// Runs `weft tune` in a process of its own, with a database of its own.
fn tune(options: &Options, model: &str, database: &Path) -> Result<Tuned> {
    let selection = ModelSelection {
        models: vec![model.to_string()],
        batches: options.batches.clone(),
        dimensions: options.dimensions.clone(),
    };
    let size = match options.device.device {
        DeviceName::Cpu => options.cores,
        DeviceName::Cuda(_) => options.sms,
    };
    let (device, thoroughness) = (&options.device, options.thoroughness);
    let report = child::report(child::command(&selection, device, thoroughness, size, database)?)?;
    let number = |key: &str| report[key].as_f64().with_context(|| format!("no {key}"));
    Ok(Tuned {
        size: number("partition_size")? as usize,
        tuning_s: number("total_s")? + number("prepare_s")?,
    })
}

/// The model at every batch size with what was found and without.
fn compare(
    options: &Options,
    device: &OpenDevice,
    model: &str,
    tuned: &Tuned,
    database: &Path,
) -> Result<Vec<Gain>> {
    let tunable = device.as_tunable();
    let choices = Choices::load(&Database::open_read_only(database)?, &tunable.platform())?;
    let sets: [Arc<dyn KernelChoices>; 2] = [Arc::new(KernelSet::default()), Arc::new(choices)];
    let units = tunable.disjoint_partitions(tuned.size);
    let units = units.first().context("there is no partition of the size")?;
    let gain = |&batch: &usize| {
        let dimensions = &options.dimensions;
        let contest = Contest { device, model, batch, dimensions, units };
        let latencies_us = contest.latencies_us(&sets, COMPARISON)?;
        Ok(Gain {
            model: model.to_string(),
            batch,
            untuned_us: latencies_us[0],
            tuned_us: latencies_us[1],
            tuning_s: tuned.tuning_s,
        })
    };
    options.batches.iter().map(gain).collect()
}

fn report(options: &Options, gains: &[Gain]) -> Result<()> {
    ensure!(!gains.is_empty(), "no model was tuned");
    let factors: Vec<f64> = gains.iter().map(Gain::factor).collect();
    let mean = geometric_mean(&factors);
    let least = factors.iter().copied().fold(f64::INFINITY, f64::min);
    if options.json {
        let models: Vec<Value> = gains
            .iter()
            .map(|gain| {
                json!({
                    "model": gain.model, "batch": gain.batch, "untuned_us": gain.untuned_us,
                    "tuned_us": gain.tuned_us, "gain": gain.factor(), "tuning_s": gain.tuning_s,
                })
            })
            .collect();
        let value = json!({ "models": models, "geometric_mean": mean, "least": least });
        terminal::print(&serde_json::to_string_pretty(&value)?)?;
        return Ok(());
    }
    let mut table = Table::new(["model", "batch", "untuned us", "tuned us", "gain", "tuning, s"]);
    for gain in gains {
        table.row([
            gain.model.clone(),
            gain.batch.to_string(),
            format!("{:.1}", gain.untuned_us),
            format!("{:.1}", gain.tuned_us),
            format!("{:.3}", gain.factor()),
            format!("{:.1}", gain.tuning_s),
        ]);
    }
    terminal::print(&table.render())?;
    terminal::print(&format!("\ngeometric mean of the gains {mean:.3}, least {least:.3}"))?;
    Ok(())
}
