//! `weft bench tuning-trust`: whether candidates that are timed side by side rank as when each has the device to itself.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::json;
use weft_device::Trial;
use weft_tuner::cost_model::TrainingRows;
use weft_tuner::session::{
    Assignment, NOISE, SCALED_NOISE, Sharing, Task, TaskCandidate, TuneOptions, try_all,
};

use super::child::default_effort_ms;
use crate::bench::statistics::{median, spearman};
use crate::device::{DeviceOptions, OpenDevice};
use crate::progress;
use crate::table::Table;
use crate::terminal;
use crate::tuning::ModelSelection;

/// Fewer candidates of an operator have no order to speak of.
const LEAST_CANDIDATES: usize = 5;

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    selection: ModelSelection,
    #[command(flatten)]
    device: DeviceOptions,
    /// The size of the partitions that are tuned for, in cores of a CPU [default: 1]
    #[arg(long)]
    cores: Option<usize>,
    /// The size of the partitions that are tuned for, in SMs of a GPU [default: 8]
    #[arg(long)]
    sms: Option<usize>,
    /// Candidates that are timed, of all operators together
    #[arg(long, default_value_t = 300)]
    candidates: usize,
    /// Milliseconds for which each candidate is timed
    #[arg(long, value_name = "MS", default_value_t = default_effort_ms())]
    effort: f64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The times of an operator's candidates, in microseconds.
struct Times {
    operator: String,
    occurrences: f64,
    alone: Vec<f64>,
    alone_again: Vec<f64>,
    shared: Vec<f64>,
}

impl Times {
    fn agreement(&self) -> f64 {
        spearman(&self.alone, &self.shared)
    }

    fn agreement_alone(&self) -> f64 {
        spearman(&self.alone, &self.alone_again)
    }

    /// The time alone of the candidate that is best alone, of the one that is best when shared, and of the best among
    /// those that sharing could not tell apart.
    fn picks(&self, noise: f64) -> [f64; 3] {
        let alone = |place: usize| median(&[self.alone[place], self.alone_again[place]]);
        let all = || 0..self.shared.len();
        let least = |places: &mut dyn Iterator<Item = usize>| {
            places.map(alone).fold(f64::INFINITY, f64::min)
        };
        let best = self.shared.iter().copied().fold(f64::INFINITY, f64::min);
        let first = all().min_by(|&a, &b| self.shared[a].total_cmp(&self.shared[b])).unwrap_or(0);
        let near = all().filter(|&place| self.shared[place] <= best * (1.0 + noise));
        [least(&mut all()), alone(first), least(&mut { near })]
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.candidates > 0, "--candidates must be at least 1");
    let device = options.device.open_to_tune(1)?;
    let size = match device {
        OpenDevice::Cpu(_) => options.cores.unwrap_or(1),
        OpenDevice::Cuda(_) => options.sms.unwrap_or(8),
    };
    let tunable = device.as_tunable();
    let screening = tunable.screening_size(size);
    let tasks = options.selection.tasks(&device, size)?;
    let tried = candidates(&tasks, options.candidates, screening < size);
    let experience = TrainingRows::default();
    let assignment = Assignment { size, tasks: &tasks, experience: &experience };
    let measure = |what: &str, sharing, bench_size| {
        progress::show(format!("{} candidates {what}", tried.len()));
        let effort = Duration::from_secs_f64(options.effort / 1e3);
        let options = TuneOptions { sharing, effort, ..TuneOptions::default() };
        try_all(tunable, assignment, bench_size, &tried, &options)
    };
    // Compiles everything, so that all three that count find it compiled.
    measure("side by side, to begin with", Sharing::All, screening)?;
    let alone = measure("one at a time", Sharing::OneAtATime, size)?;
    let shared = measure("side by side", Sharing::All, screening)?;
    let alone_again = measure("one at a time again", Sharing::OneAtATime, size)?;
    progress::clear();
    let times = by_operator(&tasks, &tried, [&alone, &alone_again, &shared]);
    report(options, &device, size, screening, &times)
}

/// Candidates spread evenly over the operators, and over each operator's list.
fn candidates(tasks: &[Task], wanted: usize, is_scaled: bool) -> Vec<TaskCandidate> {
    let each = wanted.div_ceil(tasks.len().max(1));
    let mut tried = Vec::new();
    for (task, of) in tasks.iter().enumerate() {
        let all = of.operator.candidates();
        let usable: Vec<usize> = (0..all.len())
            .filter(|&candidate| all[candidate].screening.allows(is_scaled))
            .collect();
        let count = each.min(usable.len());
        tried.extend((0..count).map(|step| (task, usable[step * usable.len() / count])));
    }
    tried
}

fn by_operator(tasks: &[Task], tried: &[TaskCandidate], trials: [&[Trial]; 3]) -> Vec<Times> {
    let us = |trial: &Trial| match trial {
        Trial::Measured(measurement) => Some(measurement.time.as_secs_f64() * 1e6),
        Trial::Wrong { .. } | Trial::Failed(_) => None,
    };
    let mut all: Vec<Times> = tasks
        .iter()
        .map(|task| Times {
            operator: task.operator.key().operator.clone(),
            occurrences: task.occurrences,
            alone: Vec::new(),
            alone_again: Vec::new(),
            shared: Vec::new(),
        })
        .collect();
    for (place, &(task, _)) in tried.iter().enumerate() {
        let [alone, again, shared] = trials.map(|trials| us(&trials[place]));
        if let (Some(alone), Some(again), Some(shared)) = (alone, again, shared) {
            let times = &mut all[task];
            times.alone.push(alone);
            times.alone_again.push(again);
            times.shared.push(shared);
        }
    }
    all.retain(|times| times.shared.len() >= LEAST_CANDIDATES);
    all
}

fn report(
    options: &Options,
    device: &OpenDevice,
    size: usize,
    screening: usize,
    all: &[Times],
) -> Result<()> {
    ensure!(!all.is_empty(), "no operator has {LEAST_CANDIDATES} candidates that could be timed");
    let noise = if screening < size { SCALED_NOISE } else { NOISE };
    let mut table = Table::new([
        "operator",
        "candidates",
        "agreement",
        "alone twice",
        "best alone, us",
        "best shared, us",
        "after finals, us",
    ]);
    let mut sums = [0.0; 3];
    for times in all {
        let picks = times.picks(noise);
        for (sum, pick) in sums.iter_mut().zip(picks) {
            *sum += pick * times.occurrences;
        }
        table.row(
            [times.operator.clone(), times.shared.len().to_string()]
                .into_iter()
                .chain(
                    [times.agreement(), times.agreement_alone()].map(|value| format!("{value:.3}")),
                )
                .chain(picks.map(|pick| format!("{pick:.2}"))),
        );
    }
    let count: usize = all.iter().map(|times| times.shared.len()).sum();
    // Relative to the operator's best, so that one order holds for the candidates of all operators.
    let relative = |read: fn(&Times) -> &[f64]| -> Vec<f64> {
        let of = |times| {
            let best = read(times).iter().copied().fold(f64::INFINITY, f64::min);
            read(times).iter().map(move |time| time / best)
        };
        all.iter().flat_map(of).collect()
    };
    let pooled = spearman(&relative(|times| &times.alone), &relative(|times| &times.shared));
    let pooled_alone =
        spearman(&relative(|times| &times.alone), &relative(|times| &times.alone_again));
    let agreements: Vec<f64> = all.iter().map(Times::agreement).collect();
    let least = agreements.iter().copied().fold(f64::INFINITY, f64::min);
    let [best, shared, finals] = sums;
    if options.json {
        let value = json!({
            "partition_size": size, "screened_on": screening, "candidates": count,
            "spearman": pooled, "spearman_alone_twice": pooled_alone,
            "spearman_of_operators_median": median(&agreements), "spearman_of_operators_least": least,
            "pick_shared_over_alone": shared / best, "pick_after_finals_over_alone": finals / best,
        });
        terminal::print(&serde_json::to_string_pretty(&value)?)?;
        return Ok(());
    }
    terminal::print(&table.render())?;
    terminal::print(&format!(
        "\n{count} candidates for partitions of {size} {}, side by side on partitions of {screening}:\n\
         order agrees with that of one at a time: {pooled:.3} over all (one at a time, twice: {pooled_alone:.3}), \
         of operators {:.3} in the median and {least:.3} at least\n\
         the fastest when shared is {:.2} % slower than the fastest alone, and {:.2} % after the finals",
        device.counted_in(),
        median(&agreements),
        (shared / best - 1.0) * 100.0,
        (finals / best - 1.0) * 100.0,
    ))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_are_compared_by_their_time_alone() {
        let times = Times {
            operator: "product".into(),
            occurrences: 1.0,
            alone: vec![10.0, 11.0, 30.0],
            alone_again: vec![10.0, 11.0, 30.0],
            shared: vec![12.1, 12.0, 40.0],
        };
        assert_eq!(times.picks(0.0), [10.0, 11.0, 11.0]);
        assert_eq!(times.picks(0.03), [10.0, 11.0, 10.0]);
    }
}
