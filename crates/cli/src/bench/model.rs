//! `weft bench model`: latency, GFLOP/s and share of peak.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use super::statistics::{median, quantile};
use super::steps;
use super::timing::Subject;
use crate::device::DeviceOptions;
use crate::model_file::{self, DimensionOptions};
use crate::progress;
use crate::table::Table;
use crate::terminal;
use crate::tuning::{TunedKernels, TuningOptions};

#[derive(Args)]
pub(crate) struct Options {
    /// The models: ONNX files, or zoo:NAME
    #[arg(required = true)]
    models: Vec<String>,
    /// Batch sizes
    #[arg(long, value_delimiter = ',', default_value = "1")]
    batch: Vec<usize>,
    #[command(flatten)]
    device: DeviceOptions,
    /// Numbers of cores of a CPU [default: 1]
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,
    /// Numbers of SMs of a GPU [default: all]
    #[arg(long, value_delimiter = ',')]
    sms: Vec<usize>,
    /// Seconds to measure each case
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    #[command(flatten)]
    dimensions: DimensionOptions,
    #[command(flatten)]
    tuning: TuningOptions,
    /// Also show where the time goes: the slowest steps, and all steps by kernel
    #[arg(long)]
    steps: bool,
    /// Also write the results as JSON to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const LEAST_RUNS: usize = 5;

pub(crate) fn run(options: &Options) -> Result<()> {
    let device = options.device.open()?;
    let tuned = options.tuning.apply(&device)?;
    let peak = device.peak_gflops();
    let about = device.as_device().description();
    let peak_in_words =
        peak.map(|peak| format!(", peak {peak:.0} GFLOP/s per core")).unwrap_or_default();
    let tuned_in_words = tuned.map(TunedKernels::in_words).unwrap_or_default();
    terminal::print(&format!(
        "{}, {}{peak_in_words}{tuned_in_words}",
        about.name, about.instruction_set
    ))?;
    let counted_in = device.counted_in();
    let otherwise = if peak.is_some() { 1 } else { device.size_of(&device.units()) };
    let sizes = device.chosen_sizes(&options.cores, &options.sms, otherwise)?;
    let mut table = Table::new([
        "model",
        "batch",
        counted_in,
        "median ms",
        "p10",
        "p90",
        "items/s",
        "GFLOP/s",
        "% of peak",
    ]);
    let mut cases = Vec::new();
    for model in &options.models {
        let path = model_file::resolve(model)?;
        for &batch in &options.batch {
            for &size in &sizes {
                progress::show(format!("{model}, batch {batch}, {size} {counted_in}"));
                let units = device.units_of_size(size)?;
                let subject =
                    Subject::new(&path, batch, &options.dimensions, device.as_device(), &units)?;
                let latencies = subject
                    .latencies_ms(LEAST_RUNS, Duration::from_secs_f64(options.seconds.max(0.0)))?;
                let (middle, low, high) =
                    (median(&latencies), quantile(&latencies, 0.1), quantile(&latencies, 0.9));
                let gflops = subject.executable.report().flops as f64 / middle * 1e-6;
                table.row([
                    model_file::name(&path),
                    batch.to_string(),
                    device.size_of(&units).to_string(),
                    format!("{middle:.2}"),
                    format!("{low:.2}"),
                    format!("{high:.2}"),
                    format!("{:.1}", batch as f64 / middle * 1e3),
                    format!("{gflops:.1}"),
                    peak.map_or_else(String::new, |peak| {
                        format!("{:.0}", gflops / (peak * size as f64) * 100.0)
                    }),
                ]);
                if options.steps {
                    progress::clear();
                    terminal::print(&format!(
                        "{model}, batch {batch}, {size} {counted_in}\n{}\n",
                        steps::render(&subject)?
                    ))?;
                }
                cases.push(json!({
                    "model": model_file::name(&path),
                    "batch": batch,
                    counted_in.to_lowercase(): device.size_of(&units),
                    "latency_ms_p10": low,
                    "latency_ms_p50": middle,
                    "latency_ms_p90": high,
                    "runs": latencies.len(),
                    "gflops": gflops,
                    "arena_bytes": subject.executable.report().arena_bytes,
                }));
            }
        }
    }
    progress::clear();
    terminal::print(&table.render())?;
    if let Some(path) = &options.json {
        let report = json!({ "device": about.name, "peak_gflops_per_core": peak, "cases": cases });
        std::fs::write(path, serde_json::to_string_pretty(&report)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
