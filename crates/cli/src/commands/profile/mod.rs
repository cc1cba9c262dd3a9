//! `weft profile`: how long models take at every batch size on every share of a device, and where the knees are.

pub(super) mod bandwidth;
mod measure;
mod model;
mod plot;
mod record;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use weft_scheduler::{Profile, ProfileSet};

use crate::device::DeviceOptions;
use crate::files;
use crate::kernel_options::KernelOptions;
use crate::model_file::DimensionOptions;
use crate::table::Table;
use crate::terminal;
use crate::tuning::TuningOptions;
use measure::Measured;

#[derive(Args)]
pub(crate) struct Options {
    /// The models: ONNX files, or zoo:NAME
    #[arg(required_unless_present = "from")]
    models: Vec<String>,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    kernels: KernelOptions,
    #[command(flatten)]
    tuning: TuningOptions,
    /// Batch sizes
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8")]
    batches: Vec<u32>,
    /// Numbers of units: cores of a CPU, groups of SMs of a GPU [default: powers of two, and all]
    #[arg(long, value_delimiter = ',')]
    units: Vec<u32>,
    /// Seconds to measure each case [default: 0.5 on a CPU, 0.1 on a GPU]
    #[arg(long)]
    seconds: Option<f64>,
    #[command(flatten)]
    dimensions: DimensionOptions,
    /// Bandwidth of the device's memory in GB/s [default: measured]
    #[arg(long, value_name = "GB_PER_S")]
    bandwidth: Option<f64>,
    /// What else is to be known of the measurement, for the file's comment
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Write the profiles to this file, after every model
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Keep the models that the file has already, and measure the others
    #[arg(long, requires = "output")]
    add: bool,
    /// Show the profiles of this file instead of measuring
    #[arg(long, value_name = "FILE", conflicts_with_all = ["models", "output"])]
    from: Option<PathBuf>,
    /// Draw latency over units as an SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// The knee is where a doubling of the units gains less than this share
    #[arg(long, default_value_t = 0.1)]
    threshold: f64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let has_threshold = options.threshold > 0.0 && options.threshold < 1.0;
    ensure!(has_threshold, "--threshold must be between 0 and 1");
    let Measured { set, failures } = match &options.from {
        Some(path) => Measured { set: read(path)?, failures: Vec::new() },
        None => measure::measure(options)?,
    };
    if !set.profiles.is_empty() {
        show(&set, options)?;
    }
    ensure!(failures.is_empty(), "{} models failed, first {}", failures.len(), failures[0]);
    Ok(())
}

fn show(set: &ProfileSet, options: &Options) -> Result<()> {
    let device = &set.device;
    terminal::print(&format!(
        "{}, {} units (a unit is one {})\n",
        device.name, device.units, device.unit
    ))?;
    terminal::print(&table(set, options.threshold).render())?;
    terminal::print(&format!(
        "\nms alone; * is the knee: twice the units gain less than {}",
        options.threshold
    ))?;
    let Some(path) = &options.plot else { return Ok(()) };
    fs::write(path, plot::svg(set, options.threshold))
        .with_context(|| format!("cannot write {}", path.display()))
}

fn read(path: &Path) -> Result<ProfileSet> {
    let text = files::read_text(path).with_context(|| format!("cannot read {}", path.display()))?;
    ProfileSet::from_toml(&text)
        .map_err(|problems| anyhow::anyhow!("{}:\n{problems}", path.display()))
}

/// One row per model and batch, one column per number of units.
fn table(set: &ProfileSet, threshold: f64) -> Table {
    let mut columns: Vec<u32> =
        set.profiles.values().flat_map(|profile| profile.units()).copied().collect();
    columns.sort_unstable();
    columns.dedup();
    let titles: Vec<String> = columns
        .iter()
        .map(|units| format!("{units} unit{} ", if *units == 1 { "" } else { "s" }))
        .collect();
    let mut table = Table::new(["model", "batch"].into_iter().chain(titles.iter().map(|t| &**t)));
    for (name, profile) in &set.profiles {
        for &batch in profile.batches() {
            let cells = columns.iter().map(|&units| cell(profile, batch, units, threshold));
            table.row([name.clone(), batch.to_string()].into_iter().chain(cells));
        }
    }
    table
}

fn cell(profile: &Profile, batch: u32, units: u32, threshold: f64) -> String {
    if !profile.units().contains(&units) {
        return String::new();
    }
    let mark = if profile.knee(batch, threshold) == units { '*' } else { ' ' };
    format!("{:.3}{mark}", profile.latency(batch, units).us() * 1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const FILE: &str = r#"
[device]
name = "D & <co>"
units = 4
unit = "core"
bandwidth_gb_per_s = 10
memory_mb = 100
[models.a]
batches = [1, 2]
units = [1, 2, 4]
latency_us = [[900, 500, 490], [1800, 1000, 600]]
dram_mb = 1
memory_mb = 1
[models."b<c"]
batches = [1]
units = [1]
latency_us = [[12345]]
dram_mb = 1
memory_mb = 1
"#;

    #[test]
    fn the_table_marks_each_knee_once() {
        let text = table(&ProfileSet::from_toml(FILE).unwrap(), 0.1).render();
        let rows: Vec<Vec<&str>> =
            text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            rows,
            [
                vec!["a", "1", "0.900", "0.500*", "0.490"],
                vec!["a", "2", "1.800", "1.000", "0.600*"],
                vec!["b<c", "1", "12.345*"],
            ]
        );
    }
}
