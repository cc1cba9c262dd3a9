//! `weft bench tuning-grid`: kernels tuned for partitions of several sizes, each served on every size.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;
use weft_device::{KernelChoices, OperatorKey};
use weft_tuner::choices::Choices;
use weft_tuner::database::Database;

use super::child::{self, Thoroughness};
use super::heat_map;
use crate::bench::statistics::geometric_mean;
use crate::device::{DeviceOptions, OpenDevice};
use crate::progress;
use crate::table::Table;
use crate::terminal;
use crate::tuning::{Contest, ContestSettings, KernelSet, ModelSelection};

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    selection: ModelSelection,
    #[command(flatten)]
    device: DeviceOptions,
    /// Sizes of partitions, in cores of a CPU [default: 1, 2, 4, ... and all]
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,
    /// Sizes of partitions, in SMs of a GPU [default: 8, 16, 32, 64 and all]
    #[arg(long, value_delimiter = ',')]
    sms: Vec<usize>,
    #[command(flatten)]
    thoroughness: Thoroughness,
    /// Rounds in which every set of kernels has its turn
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds for each set of kernels in each round
    #[arg(long, default_value_t = 0.05)]
    seconds: f64,
    /// Draw the matrix as an SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Latencies in microseconds, geometric means over models and batch sizes.
struct Grid {
    sizes: Vec<usize>,
    /// By the size tuned for, then by the size served on.
    tuned: Vec<Vec<f64>>,
    /// By the size served on.
    untuned: Vec<f64>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.rounds > 0, "--rounds must be at least 1");
    let device = options.device.open()?;
    let sizes = sizes(options, &device)?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut sets: Vec<Arc<dyn KernelChoices>> = Vec::new();
    let counted_in = device.counted_in();
    for &size in &sizes {
        progress::show(format!("tuning for {size} {counted_in}"));
        tune(options, size, folder.path())?;
    }
    for &size in &sizes {
        progress::show(format!("tuning for {size} {counted_in}, with what is known of others"));
        tune(options, size, folder.path())?;
    }
    let choices = Arc::new(choices(&device, folder.path())?);
    for &size in &sizes {
        sets.push(Arc::new(OneSize { choices: choices.clone(), size }));
    }
    sets.push(Arc::new(KernelSet::default()));
    let grid = measure(options, &device, &sizes, &sets)?;
    progress::clear();
    if let Some(path) = &options.plot {
        let svg = heat_map::svg(&grid.sizes, &grid.relative(), device.counted_in());
        std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
    }
    match options.json {
        true => terminal::print(&serde_json::to_string_pretty(&grid.json())?)?,
        false => grid.print(device.counted_in())?,
    }
    Ok(())
}

fn sizes(options: &Options, device: &OpenDevice) -> Result<Vec<usize>> {
    let all = device.as_tunable().size();
    let least = match device {
        OpenDevice::Cpu(_) => 1,
        OpenDevice::Cuda(_) => 8,
    };
    let doublings = (0..).map(|step| least << step).take_while(|&size| size < all);
    let usual: Vec<usize> = doublings.chain([all]).collect();
    let mut sizes = device.chosen_sizes(&options.cores, &options.sms, 0)?;
    if sizes == [0] {
        sizes = usual;
    }
    sizes.sort_unstable();
    sizes.dedup();
    for &size in &sizes {
        let is_there = !device.as_tunable().disjoint_partitions(size).is_empty();
        ensure!(is_there, "there is no partition of exactly {size} {}", device.counted_in());
    }
    Ok(sizes)
}

/// What was chosen for partitions of one size, wherever it is served.
struct OneSize {
    choices: Arc<Choices>,
    size: usize,
}

impl KernelChoices for OneSize {
    fn choice(&self, operator: &OperatorKey, _: usize) -> Option<Arc<str>> {
        self.choices.choice(operator, self.size)
    }
}

/// One database for all sizes.
const DATABASE: &str = "tuning.db";

/// Tunes in a process of its own, as `weft tune` does.
fn tune(options: &Options, size: usize, folder: &Path) -> Result<()> {
    let Options { selection, device, thoroughness, .. } = options;
    let database = folder.join(DATABASE);
    child::report(child::command(selection, device, *thoroughness, Some(size), &database)?)?;
    Ok(())
}

fn choices(device: &OpenDevice, folder: &Path) -> Result<Choices> {
    let database = Database::open_read_only(&folder.join(DATABASE))?;
    Ok(Choices::load(&database, &device.as_tunable().platform())?)
}

fn measure(
    options: &Options,
    device: &OpenDevice,
    sizes: &[usize],
    sets: &[Arc<dyn KernelChoices>],
) -> Result<Grid> {
    let time = Duration::from_secs_f64(options.seconds);
    let settings = ContestSettings { preparations: 1, rounds: options.rounds, time };
    let mut columns = Vec::new();
    for &size in sizes {
        let units = device.as_tunable().disjoint_partitions(size);
        let units = units.first().context("there was one before")?;
        let mut cases: Vec<Vec<f64>> = vec![Vec::new(); sets.len()];
        for model in &options.selection.models {
            for &batch in &options.selection.batches {
                progress::show(format!("{model}, batch {batch}, {size} {}", device.counted_in()));
                let dimensions = &options.selection.dimensions;
                let contest = Contest { device, model, batch, dimensions, units };
                let latencies = contest.latencies_us(sets, settings)?;
                for (case, latency) in cases.iter_mut().zip(latencies) {
                    case.push(latency);
                }
            }
        }
        columns.push(cases.iter().map(|case| geometric_mean(case)).collect::<Vec<f64>>());
    }
    let tuned_for = |place: usize| columns.iter().map(|column| column[place]).collect();
    Ok(Grid {
        sizes: sizes.to_vec(),
        tuned: (0..sizes.len()).map(tuned_for).collect(),
        untuned: columns.iter().map(|column| column[sizes.len()]).collect(),
    })
}

impl Grid {
    /// Each latency relative to the least that any set has on the same size.
    fn relative(&self) -> Vec<Vec<f64>> {
        let least =
            |served: usize| self.tuned.iter().map(|row| row[served]).fold(f64::INFINITY, f64::min);
        let relative = |row: &Vec<f64>| {
            row.iter().enumerate().map(|(served, time)| time / least(served)).collect()
        };
        self.tuned.iter().map(relative).collect()
    }

    /// How much slower a set tuned for its serving size is than the best other set there, at worst.
    fn worst_diagonal(&self) -> f64 {
        let relative = self.relative();
        (0..self.sizes.len()).map(|place| relative[place][place]).fold(1.0, f64::max)
    }

    /// The set that is best over all sizes, by the geometric mean of its relative latencies.
    fn best_single(&self) -> (usize, f64) {
        let means: Vec<f64> = self.relative().iter().map(|row| geometric_mean(row)).collect();
        let best = (0..means.len()).min_by(|&a, &b| means[a].total_cmp(&means[b])).unwrap_or(0);
        (self.sizes[best], means[best])
    }

    /// How many times as fast the least size is with kernels tuned for it than with those tuned for the largest.
    fn gain_at_least_size(&self) -> f64 {
        self.tuned[self.sizes.len() - 1][0] / self.tuned[0][0]
    }

    fn json(&self) -> serde_json::Value {
        let (best, mean) = self.best_single();
        json!({
            "sizes": self.sizes, "tuned_us": self.tuned, "untuned_us": self.untuned,
            "worst_diagonal": self.worst_diagonal(), "best_single_size": best,
            "best_single_mean": mean, "gain_at_least_size": self.gain_at_least_size(),
        })
    }

    fn print(&self, counted_in: &str) -> Result<()> {
        let titles: Vec<String> =
            self.sizes.iter().map(|size| format!("on {size} {counted_in}, us")).collect();
        let mut table = Table::new(["tuned for"].into_iter().chain(titles.iter().map(|t| &**t)));
        let relative = self.relative();
        for (place, (size, row)) in self.sizes.iter().zip(&self.tuned).enumerate() {
            let cells =
                row.iter().zip(&relative[place]).enumerate().map(|(served, (time, over))| {
                    let mark = if served == place { "*" } else { "" };
                    format!("{time:.1} ({over:.3}){mark}")
                });
            table.row([size.to_string()].into_iter().chain(cells));
        }
        let untuned = self.untuned.iter().map(|time| format!("{time:.1}"));
        table.row(["nothing".to_string()].into_iter().chain(untuned));
        terminal::print(&table.render())?;
        let (best, mean) = self.best_single();
        terminal::print(&format!(
            "\nin brackets relative to the best of the column; * is tuned for where it is served\n\
             kernels tuned for where they are served are at most {:.1} % slower than any others there\n\
             on {} {counted_in} they are {:.2} times as fast as those tuned for {}\n\
             if there were one set for all sizes: that tuned for {best}, {:.1} % slower than choosing per size",
            (self.worst_diagonal() - 1.0) * 100.0,
            self.sizes[0],
            self.gain_at_least_size(),
            self.sizes[self.sizes.len() - 1],
            (mean - 1.0) * 100.0,
        ))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_says_who_wins_where() {
        let grid = Grid {
            sizes: vec![8, 32],
            tuned: vec![vec![100.0, 44.0], vec![150.0, 40.0]],
            untuned: vec![160.0, 50.0],
        };
        assert_eq!(grid.relative(), [[1.0, 1.1], [1.5, 1.0]]);
        assert_eq!(grid.worst_diagonal(), 1.0);
        assert_eq!(grid.gain_at_least_size(), 1.5);
        assert_eq!(grid.best_single().0, 8);
    }
}
