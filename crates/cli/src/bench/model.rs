//! `weft bench model`: latency, GFLOP/s and share of peak.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use weft_cpu::{CpuDevice, peak_gflops};
use weft_device::Device;

use super::statistics::{median, quantile};
use super::steps;
use super::timing::{Subject, first_units};
use crate::model_file::{self, DimensionOptions};
use crate::progress;
use crate::table::Table;

#[derive(Args)]
pub(crate) struct Options {
    /// The models: ONNX files, or zoo:NAME
    #[arg(required = true)]
    models: Vec<String>,
    /// Batch sizes
    #[arg(long, value_delimiter = ',', default_value = "1")]
    batch: Vec<usize>,
    /// Numbers of cores
    #[arg(long, value_delimiter = ',', default_value = "1")]
    cores: Vec<usize>,
    /// Seconds to measure each case
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    #[command(flatten)]
    dimensions: DimensionOptions,
    /// Also show where the time goes: the slowest steps, and all steps by kernel
    #[arg(long)]
    steps: bool,
    /// Also write the results as JSON to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const LEAST_RUNS: usize = 5;

pub(crate) fn run(options: &Options) -> Result<()> {
    let device = CpuDevice::new()?;
    let peak = peak_gflops(device.isa());
    println!(
        "{}, {}, peak {peak:.0} GFLOP/s per core",
        device.description().name,
        device.description().instruction_set
    );
    let mut table = Table::new([
        "model",
        "batch",
        "cores",
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
            for &cores in &options.cores {
                progress::show(format!("{model}, batch {batch}, {cores} cores"));
                let units = first_units(&device, cores)?;
                let subject = Subject::new(&path, batch, &options.dimensions, &device, &units)?;
                let latencies = subject
                    .latencies_ms(LEAST_RUNS, Duration::from_secs_f64(options.seconds.max(0.0)))?;
                let (middle, low, high) =
                    (median(&latencies), quantile(&latencies, 0.1), quantile(&latencies, 0.9));
                let gflops = subject.executable.report().flops as f64 / middle * 1e-6;
                table.row([
                    model_file::name(&path),
                    batch.to_string(),
                    cores.to_string(),
                    format!("{middle:.2}"),
                    format!("{low:.2}"),
                    format!("{high:.2}"),
                    format!("{:.1}", batch as f64 / middle * 1e3),
                    format!("{gflops:.1}"),
                    format!("{:.0}", gflops / (peak * cores as f64) * 100.0),
                ]);
                if options.steps {
                    progress::clear();
                    println!(
                        "{model}, batch {batch}, {cores} cores\n{}\n",
                        steps::render(&subject)?
                    );
                }
                cases.push(json!({
                    "model": model_file::name(&path),
                    "batch": batch,
                    "cores": cores,
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
    println!("{}", table.render());
    if let Some(path) = &options.json {
        let report = json!({ "peak_gflops_per_core": peak, "cases": cases });
        std::fs::write(path, serde_json::to_string_pretty(&report)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
