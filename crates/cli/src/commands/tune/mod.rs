//! `weft tune`: the fastest kernels for the share of the device that models will get.

mod watching;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use weft_tuner::database::Database;
use weft_tuner::search::{SearchOptions, Strategy};
use weft_tuner::session::{Assignment, Outcome, Sharing, Stop, Task, TuneOptions, tune};
use weft_tuner::{Recorder, experience};

use crate::device::{DeviceOptions, OpenDevice};
use crate::table::Table;
use crate::tuning::ModelSelection;
use watching::Watching;

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    selection: ModelSelection,
    #[command(flatten)]
    device: DeviceOptions,
    /// Sizes of the partitions that the models will get, in cores of a CPU [default: 1]
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,
    /// Sizes of the partitions that the models will get, in SMs of a GPU [default: all]
    #[arg(long, value_delimiter = ',')]
    sms: Vec<usize>,
    /// The tuning database [default: WEFT_TUNING_DB, else tuning.db in the cache folder]
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
    /// End after this long, with the best found so far, as 60s or 5m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    budget: Option<Duration>,
    /// Candidates of each operator that are tried at most
    #[arg(long, default_value_t = SearchOptions::default().max_trials)]
    trials: usize,
    /// Milliseconds for which each candidate is timed
    #[arg(long, value_name = "MS", default_value_t = 10.0)]
    effort: f64,
    /// Time one candidate after another, with the device to itself
    #[arg(long)]
    one_at_a_time: bool,
    /// Choose what to try at random, not by what was learned
    #[arg(long)]
    random: bool,
    /// Where the search's random numbers begin
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A time with its unit.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let refuse = || format!("'{text}' is no time; give it as 500ms, 60s, 5m or 1h");
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let number: f64 = number.parse().map_err(|_| refuse())?;
    let seconds = match unit {
        "ms" => number / 1e3,
        "s" | "" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(refuse()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| refuse())
}

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.effort > 0.0 && options.effort < 60_000.0, "--effort must be positive");
    ensure!(options.trials > 0, "--trials must be at least 1");
    let path = match &options.db {
        Some(path) => path.clone(),
        None => Database::default_path()?,
    };
    let database = Database::open(&path)?;
    let device = options.device.open()?;
    device.start_compile_helpers()?;
    let otherwise = match device {
        OpenDevice::Cpu(_) => 1,
        OpenDevice::Cuda(_) => device.size_of(&device.units()),
    };
    let sizes = device.chosen_sizes(&options.cores, &options.sms, otherwise)?;
    let mut reports = Vec::new();
    for &size in &sizes {
        let report = tune_size(options, &device, &database, size)
            .with_context(|| format!("for partitions of {size} {}", device.counted_in()))?;
        reports.push(report);
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&Value::Array(reports))?);
    }
    Ok(())
}

fn tune_size(
    options: &Options,
    device: &OpenDevice,
    database: &Database,
    size: usize,
) -> Result<Value> {
    let tunable = device.as_tunable();
    let mut tasks = options.selection.tasks(device, size)?;
    let recorder = Recorder::new(database, &tunable.platform(), size, &tasks);
    recorder.recall(&mut tasks)?;
    let strategy = if options.random { Strategy::Random } else { Strategy::Learned };
    let search = SearchOptions {
        strategy,
        seed: options.seed,
        max_trials: options.trials,
        ..SearchOptions::default()
    };
    let tune_options = TuneOptions {
        search,
        sharing: if options.one_at_a_time { Sharing::OneAtATime } else { Sharing::All },
        effort: Duration::from_secs_f64(options.effort / 1e3),
        budget: options.budget,
        ..TuneOptions::default()
    };
    static STOP: Stop = Stop::new();
    let watching = Watching { recorder: &recorder, tasks: &tasks };
    let experience = experience(database, &tunable.platform())?;
    let assignment = Assignment { size, tasks: &tasks, experience: &experience };
    let outcome = tune(tunable, assignment, &tune_options, &watching, &STOP)?;
    recorder.chosen(&tasks, &outcome.choices)?;
    crate::progress::clear();
    if !options.json {
        print(device, size, &tasks, &outcome);
    }
    Ok(report(size, &tasks, &outcome))
}

fn print(device: &OpenDevice, size: usize, tasks: &[Task], outcome: &Outcome) {
    let mut table =
        Table::new(["operator", "times", "kernel", "us", "untuned us", "gain", "trials"]);
    let (mut tuned, mut untuned) = (0.0, 0.0);
    for (task, choice) in tasks.iter().zip(&outcome.choices) {
        let Some(choice) = choice else { continue };
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        tuned += us(choice.time) * task.occurrences;
        untuned += us(choice.untuned_time) * task.occurrences;
        table.row([
            task.operator.key().operator.clone(),
            format!("{}", task.occurrences),
            task.operator.candidates()[choice.candidate].name.clone(),
            format!("{:.1}", us(choice.time)),
            format!("{:.1}", us(choice.untuned_time)),
            format!("{:.2}", choice.gain()),
            choice.trials.to_string(),
        ]);
    }
    println!("{}", table.render());
    let s = &outcome.statistics;
    println!(
        "\n{size} {}: operators {untuned:.0} -> {tuned:.0} us, {:.2} times as fast; {} trials on {} \
         partitions in {:.1} s ({:.0} trials/s), {} repeated, {} wrong, {} failed; all {:.1} s; \
         compiling took {:.1} core seconds",
        device.counted_in(),
        untuned / tuned,
        s.trials,
        s.benches,
        s.screening_time.as_secs_f64(),
        s.trials as f64 / s.screening_time.as_secs_f64(),
        s.repeated,
        s.wrong,
        s.failed,
        s.total_time.as_secs_f64(),
        s.compile_time.as_secs_f64(),
    );
}

fn report(size: usize, tasks: &[Task], outcome: &Outcome) -> Value {
    let s = &outcome.statistics;
    let operators = tasks.iter().zip(&outcome.choices).map(|(task, choice)| {
        json!({
            "operator": task.operator.key().operator,
            "precision": task.operator.key().precision,
            "occurrences": task.occurrences,
            "candidates": task.operator.candidates().len(),
            "kernel": choice.as_ref().map(|it| &task.operator.candidates()[it.candidate].name),
            "time_us": choice.as_ref().map(|it| it.time.as_secs_f64() * 1e6),
            "untuned_time_us": choice.as_ref().map(|it| it.untuned_time.as_secs_f64() * 1e6),
            "trials": choice.as_ref().map(|it| it.trials),
        })
    });
    json!({
        "partition_size": size,
        "operators": operators.collect::<Vec<_>>(),
        "trials": s.trials,
        "benches": s.benches,
        "screening_s": s.screening_time.as_secs_f64(),
        "total_s": s.total_time.as_secs_f64(),
        "compile_core_s": s.compile_time.as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, seconds) in [("60s", 60.0), ("1.5m", 90.0), ("250ms", 0.25), ("2", 2.0)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "s", "-1s", "1x", "1e99h", "nan"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
