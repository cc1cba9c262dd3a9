//! `weft bench tuning-gain`: what models gain when their kernels are tuned for the partition that they run on.

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};

use super::child::{self, Thoroughness};
use crate::bench::statistics::geometric_mean;
use crate::device::{DeviceName, DeviceOptions};
use crate::model_file::DimensionOptions;
use crate::progress;
use crate::table::Table;
use crate::tuning::ModelSelection;

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
    batch: u64,
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
    let folder = std::env::temp_dir().join(format!("weft-tuning-gain-{}", std::process::id()));
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let mut gains = Vec::new();
    for (place, model) in models.iter().enumerate() {
        progress::show(format!("{model}, {} of {}", place + 1, models.len()));
        let tuned = tune(options, model, &folder.join(format!("{place}.db")));
        gains.extend(tuned.with_context(|| model.clone())?);
    }
    let _ = std::fs::remove_dir_all(&folder);
    progress::clear();
    report(options, &gains)
}

/// Runs `weft tune` in a process of its own, with a database of its own.
fn tune(options: &Options, model: &str, database: &std::path::Path) -> Result<Vec<Gain>> {
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
    let total = |key: &str| report[key].as_f64().unwrap_or(0.0);
    let tuning_s = total("total_s") + total("prepare_s");
    let models = report["models"].as_array().cloned().unwrap_or_default();
    let gain = |value: &Value| {
        let number = |key: &str| value[key].as_f64().with_context(|| format!("no {key}"));
        Ok(Gain {
            model: model.to_string(),
            batch: value["batch"].as_u64().context("no batch")?,
            untuned_us: number("untuned_us")?,
            tuned_us: number("tuned_us")?,
            tuning_s,
        })
    };
    models.iter().map(gain).collect()
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
        println!("{}", serde_json::to_string_pretty(&value)?);
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
    println!("{}", table.render());
    println!("\ngeometric mean of the gains {mean:.3}, least {least:.3}");
    Ok(())
}
