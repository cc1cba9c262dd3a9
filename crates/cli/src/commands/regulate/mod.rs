//! `weft regulate`: the schedule by which a known mix of models ends soonest.

mod mix_file;
mod picture;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;
use weft_scheduler::Span;
use weft_scheduler::regulate::{Mix, Stages, Strategy};

use crate::device::{DeviceOptions, OpenDevice};
use crate::duration;
use crate::files;
use crate::kernel_options::KernelOptions;
use crate::model_file::DimensionOptions;
use crate::progress;
use crate::regulation::{Budget, Outcome, Subject, Way, outcome_json, regulate};
use crate::table::Table;
use picture::Shown;

/// Rounds in which all ways have their turns.
const ROUNDS: usize = 9;

#[derive(Args)]
pub(crate) struct Options {
    /// The mix: a TOML file with a table [[models]] for each, with model = "zoo:NAME" or an ONNX file, batch and count
    mix: PathBuf,
    #[command(flatten)]
    device: DeviceOptions,
    /// How long to search, after the steps of all models were timed
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "20s")]
    budget: Span,
    /// Search by coordinate descent from even shares, as the paper does, and not from many beginnings
    #[arg(long)]
    coordinate_descent: bool,
    #[command(flatten)]
    kernels: KernelOptions,
    #[command(flatten)]
    dimensions: DimensionOptions,
    /// Draw the mix one after another and regulated, as timelines
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write both as trace events, for Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let models = mix_file::read(&options.mix)?;
    let OpenDevice::Cuda(device) = options.device.open_choosing(options.kernels)? else {
        bail!("mixes are regulated on GPUs so far; give --device cuda");
    };
    let device = Arc::new(device);
    let mut subject = Subject::new(&device, &models, &options.dimensions)?;
    let start = Instant::now();
    let mix = subject.timed()?;
    let strategy = match options.coordinate_descent {
        true => Strategy::CoordinateDescent,
        false => Strategy::Descents,
    };
    let time = Duration::from_secs_f64(options.budget.seconds());
    let budget = Budget { time, strategy, rounds: ROUNDS };
    let outcome = regulate(&mut subject, &mix, budget, start.elapsed())?;
    progress::clear();
    let names = subject.names();
    draw(options, &mix, &outcome, names)?;
    if options.json {
        let mut value = outcome_json(&outcome);
        value["models"] = json!(names);
        println!("{}", serde_json::to_string_pretty(&value)?);
        return Ok(());
    }
    println!("{}", summary(&mix, &outcome));
    Ok(())
}

fn draw(options: &Options, mix: &Mix, outcome: &Outcome, names: &[String]) -> Result<()> {
    let turns = Stages::in_turns(mix).schedule(mix);
    let turns_timeline = turns.timeline(mix);
    let title = |way: Way| format!("{}: {:.3} ms measured", way.name(), outcome.time_us(way) / 1e3);
    let shown = [
        Shown { title: title(Way::InTurns), schedule: &turns, timeline: &turns_timeline },
        Shown {
            title: title(Way::Regulated),
            schedule: &outcome.schedule,
            timeline: &outcome.timeline,
        },
    ];
    if let Some(path) = &options.svg {
        files::write(path, &picture::svg(&shown, names, mix.unit_count()))?;
    }
    if let Some(path) = &options.trace {
        files::write(path, &picture::trace(&shown, names).to_string())?;
    }
    Ok(())
}

fn summary(mix: &Mix, outcome: &Outcome) -> String {
    let mut segments = Table::new(["model", "steps", "units", "from, us", "to, us"]);
    for (segment, (begin, end)) in outcome.schedule.segments.iter().zip(&outcome.timeline.segments)
    {
        segments.row([
            mix.models()[segment.model].name().to_string(),
            format!("{} to {}", segment.steps.start, segment.steps.end),
            segment.units.len().to_string(),
            format!("{:.0}", begin.us()),
            format!("{:.0}", end.us()),
        ]);
    }
    let mut ways = Table::new(["way", "ms", "regulated is faster by"]);
    for way in Way::ALL {
        let gain = outcome.time_us(way) / outcome.time_us(Way::Regulated);
        let ms = outcome.time_us(way) / 1e3;
        ways.row([way.name().to_string(), format!("{ms:.3}"), format!("{gain:.2}")]);
    }
    format!(
        "{}\n{}\npredicted {:.3} ms; {} schedules predicted, {} run; within 2 % of the best after {:.1} s, after {:.1} s of timing steps",
        segments.render(),
        ways.render(),
        outcome.predicted_us / 1e3,
        outcome.evaluated,
        outcome.measured,
        outcome.settled().as_secs_f64(),
        outcome.profiling.as_secs_f64(),
    )
}
