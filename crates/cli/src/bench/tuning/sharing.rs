//! `weft bench tuning-sharing`: the same search with candidates side by side and one at a time, each from nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use weft_device::KernelChoices;
use weft_tuner::choices::Choices;
use weft_tuner::database::Database;

use super::child::{self, Thoroughness};
use crate::bench::statistics::geometric_mean;
use crate::device::{DeviceName, DeviceOptions, OpenDevice};
use crate::progress;
use crate::table::Table;
use crate::terminal;
use crate::tuning::{Contest, ContestSettings, ModelSelection};

/// How both results are compared.
const FINAL: ContestSettings =
    ContestSettings { preparations: 12, rounds: 6, time: Duration::from_millis(10) };

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    selection: ModelSelection,
    #[command(flatten)]
    device: DeviceOptions,
    /// Sizes of partitions that are tuned for, in cores of a CPU [default: 1]
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,
    /// Sizes of partitions that are tuned for, in SMs of a GPU [default: 8]
    #[arg(long, value_delimiter = ',')]
    sms: Vec<usize>,
    #[command(flatten)]
    thoroughness: Thoroughness,
    /// Let both find the kernels compiled that the first of them has compiled
    #[arg(long)]
    warm: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// One way to tune.
struct Tuned {
    /// From the start of the process to its end.
    wall_s: f64,
    trials_per_s: f64,
    trials: u64,
    screening_s: f64,
    database: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    compare(options, folder.path())
}

fn compare(options: &Options, folder: &Path) -> Result<()> {
    let is_gpu = options.device.device != DeviceName::Cpu;
    let asked = if is_gpu { &options.sms } else { &options.cores };
    let sizes = match asked.is_empty() {
        true => vec![if is_gpu { 8 } else { 1 }],
        false => asked.clone(),
    };
    let mut table = Table::new([
        "size",
        "how",
        "wall, s",
        "of one at a time, %",
        "trials",
        "trials/s",
        "times",
        "result, us",
        "of one at a time",
    ]);
    let mut values = Vec::new();
    // Whoever goes first reads programs and libraries from the disk, for the others too.
    progress::show("a short session, so that files are in memory");
    tune(options, folder, sizes[0], "first", &["--budget", "1s"])?;
    for &size in &sizes {
        let measure = |how: &str, arguments: &[&str]| {
            progress::show(format!("tuning for {size}, {how}"));
            tune(options, folder, size, how, arguments)
        };
        let shared = measure("side by side", &[])?;
        let single = measure("one at a time", &["--one-at-a-time"])?;
        progress::show(format!("serving both results on {size}"));
        let [shared_us, single_us] = latencies(options, size, [&shared, &single])?;
        for (how, tuned, result_us) in
            [("side by side", &shared, shared_us), ("one at a time", &single, single_us)]
        {
            table.row([
                size.to_string(),
                how.to_string(),
                format!("{:.1}", tuned.wall_s),
                format!("{:.1}", tuned.wall_s / single.wall_s * 100.0),
                tuned.trials.to_string(),
                format!("{:.1}", tuned.trials_per_s),
                format!("{:.1}", tuned.trials_per_s / single.trials_per_s),
                format!("{result_us:.1}"),
                format!("{:.3}", result_us / single_us),
            ]);
            values.push(json!({
                "partition_size": size, "how": how, "wall_s": tuned.wall_s,
                "wall_over_one_at_a_time": tuned.wall_s / single.wall_s, "trials": tuned.trials,
                "screening_s": tuned.screening_s, "trials_per_s": tuned.trials_per_s,
                "result_us": result_us, "result_over_one_at_a_time": result_us / single_us,
            }));
        }
    }
    progress::clear();
    match options.json {
        true => terminal::print(&serde_json::to_string_pretty(&Value::Array(values))?)?,
        false => terminal::print(&table.render())?,
    }
    Ok(())
}

/// Runs `weft tune` in a process of its own, with a database and caches of its own.
fn tune(
    options: &Options,
    folder: &Path,
    size: usize,
    how: &str,
    arguments: &[&str],
) -> Result<Tuned> {
    let folder = folder.join(format!("{size} {how}"));
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let database = folder.join("tuning.db");
    let Options { selection, device, thoroughness, .. } = options;
    let mut command = child::command(selection, device, *thoroughness, Some(size), &database)?;
    command.args(arguments);
    if !options.warm {
        // CUDA's compiler keeps what it has compiled as well, in a folder of its own.
        command.env("WEFT_CACHE_DIR", folder.join("cache"));
        command.env("CUDA_CACHE_PATH", folder.join("cuda")).env("CUDA_CACHE_DISABLE", "1");
    }
    let start = Instant::now();
    let report = child::report(command).with_context(|| how.to_string())?;
    let wall_s = start.elapsed().as_secs_f64();
    let number = |key: &str| report[key].as_f64().with_context(|| format!("no {key}"));
    let (trials, screening_s) = (number("trials")?, number("screening_s")?);
    let trials_per_s = trials / screening_s;
    Ok(Tuned { wall_s, trials_per_s, trials: trials as u64, screening_s, database })
}

/// The models' latencies with the kernels that each found: geometric means.
fn latencies(options: &Options, size: usize, tuned: [&Tuned; 2]) -> Result<[f64; 2]> {
    let device: OpenDevice = options.device.open()?;
    let platform = device.as_tunable().platform();
    let mut sets: Vec<Arc<dyn KernelChoices>> = Vec::new();
    for tuned in tuned {
        let database = Database::open_read_only(&tuned.database)?;
        sets.push(Arc::new(Choices::load(&database, &platform)?));
    }
    let units = device.as_tunable().disjoint_partitions(size);
    let units = units.first().context("there is no partition of the size")?;
    let mut cases = [Vec::new(), Vec::new()];
    for model in &options.selection.models {
        for &batch in &options.selection.batches {
            let dimensions = &options.selection.dimensions;
            let contest = Contest { device: &device, model, batch, dimensions, units };
            for (case, latency) in cases.iter_mut().zip(contest.latencies_us(&sets, FINAL)?) {
                case.push(latency);
            }
        }
    }
    Ok(cases.map(|case| geometric_mean(&case)))
}
