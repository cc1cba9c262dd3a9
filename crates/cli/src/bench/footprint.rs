//! One model loaded and run in a process of its own: what it costs in time and memory.

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use serde_json::json;
use weft_cpu::CpuDevice;

use super::timing::{Subject, first_units};
use crate::model_file::{self, DimensionOptions};

#[derive(Args)]
pub(crate) struct Options {
    model: String,
    #[arg(long, default_value_t = 1)]
    batch: usize,
    #[arg(long, default_value_t = 1)]
    cores: usize,
    #[command(flatten)]
    dimensions: DimensionOptions,
}

/// The most memory the process has held, and what it holds now.
fn memory_kib(key: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let path = model_file::resolve(&options.model)?;
    let device = CpuDevice::new()?;
    let units = first_units(&device, options.cores)?;
    let start = Instant::now();
    let subject = Subject::new(&path, options.batch, &options.dimensions, &device, &units)?;
    let load_ms = start.elapsed().as_secs_f64() * 1e3;
    let first_run_ms = subject.time_once_ms()?;
    println!(
        "{}",
        json!({
            "load_ms": load_ms,
            "first_run_ms": first_run_ms,
            "peak_mib": memory_kib("VmHWM:").map(|kib| kib as f64 / 1024.0),
            "resident_mib": memory_kib("VmRSS:").map(|kib| kib as f64 / 1024.0),
        })
    );
    Ok(())
}
