//! `weft regulate`: the schedule by which a known mix of models ends soonest.

mod kept;
mod mix_file;
mod picture;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::json;
use weft_engine::regulation::{Outcome, Way};
use weft_scheduler::Span;
use weft_scheduler::regulate::{Form, Segment, Stages, Strategy, Timeline};

use crate::device::DeviceOptions;
use crate::duration;
use crate::files;
use crate::kernel_options::KernelOptions;
use crate::model_file::DimensionOptions;
use crate::progress;
use crate::regulation::{Budget, Circumstances, Place, Subject, outcome_json};
use crate::table::Table;
use crate::terminal;
use kept::{DatabaseOptions, Kept};
use picture::Shown;

/// Rounds in which all ways have their turns.
const ROUNDS: usize = 9;

const ABOUT: &str = "\
What is found is kept in the tuning database, for the models at their shapes, the
number of units and the platform. The next search for the same mix runs it first
and goes on from there; it is replaced by what is faster in the same run.";

#[derive(Args)]
#[command(after_help = ABOUT)]
pub(crate) struct Options {
    /// The mix: a TOML file with a table [[models]] for each, with model = "zoo:NAME" or an ONNX file, batch and count
    mix: PathBuf,
    #[command(flatten)]
    device: DeviceOptions,
    /// How many cores of a CPU the mix has [default: all]
    #[arg(long, value_name = "COUNT")]
    cores: Option<usize>,
    /// How long to search, after the steps of all models were timed
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "20s")]
    budget: Span,
    /// Search by coordinate descent from even shares, as the paper does, and not from many beginnings
    #[arg(long)]
    coordinate_descent: bool,
    #[command(flatten)]
    database: DatabaseOptions,
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
    check_files(options)?;
    let opened = options.device.open_choosing(options.kernels)?;
    let units = opened.first_units(options.cores)?;
    let strategy = match options.coordinate_descent {
        true => Strategy::CoordinateDescent,
        false => Strategy::Descents,
    };
    let time = Duration::from_secs_f64(options.budget.seconds());
    let budget = Budget { time, strategy, rounds: ROUNDS };
    options.dimensions.check(models.iter().map(|model| &*model.name))?;
    let place = Place { device: opened.as_device(), units: &units };
    let mut subject = Subject::new(&models, &options.dimensions, place, budget)?;
    let circumstances = Circumstances::of(&opened, options.kernels.mark());
    let key = circumstances.key(subject.likeness(), subject.unit_count());
    let kept = options.database.look_up(key)?;
    let known = kept.stages(subject.timed()?);
    let names = subject.names().to_vec();
    let outcome = subject.regulated(known)?;
    progress::clear();
    kept.keep(&outcome)?;
    // What was found is said also where it cannot be drawn.
    let drawn = draw(options, &outcome, &names);
    if options.json {
        let mut value = outcome_json(&outcome);
        value["models"] = json!(names);
        value["known_since_unix_ms"] = json!(kept.since_unix_ms(&outcome));
        terminal::print(&serde_json::to_string_pretty(&value)?)?;
    } else {
        terminal::print(&summary(&outcome, &kept))?;
    }
    drawn
}

/// That what is drawn can be written, and overwrites nothing that is needed.
fn check_files(options: &Options) -> Result<()> {
    let drawings: Vec<&PathBuf> = options.svg.iter().chain(&options.trace).collect();
    for (place, path) in drawings.iter().enumerate() {
        // What is no file, such as a terminal, takes all that is written to it.
        let is_file = path.is_file() || !path.exists();
        ensure!(
            !is_file || (**path != options.mix && !drawings[..place].contains(path)),
            "{} is named twice: the mix, --svg and --trace are files of their own",
            path.display()
        );
    }
    drawings.into_iter().try_for_each(|path| files::check(path))
}

fn draw(options: &Options, outcome: &Outcome, names: &[String]) -> Result<()> {
    let mix = &outcome.mix;
    let turns = Stages::in_turns(mix).schedule(mix);
    let turns_timeline = turns.timeline(mix);
    let title = |way: Way, timeline: &Timeline| {
        let (measured_ms, drawn_ms) = (outcome.time_us(way) / 1e3, timeline.makespan.us() / 1e3);
        let name = outcome.name(way);
        format!("{name}: {measured_ms:.3} ms measured, {drawn_ms:.3} ms as drawn")
    };
    let shown = [
        (Way::InTurns, &turns, &turns_timeline),
        (Way::Regulated, &outcome.schedule, &outcome.timeline),
    ]
    .map(|(way, schedule, timeline)| Shown { title: title(way, timeline), schedule, timeline });
    if let Some(path) = &options.svg {
        files::write(path, &picture::svg(&shown, names, mix.unit_count()))?;
    }
    if let Some(path) = &options.trace {
        files::write(path, &picture::trace(&shown, names, mix.unit_count()).to_string())?;
    }
    Ok(())
}

fn how(segment: &Segment) -> String {
    let Form { chunks, until } = segment.form;
    match (segment.is_filler, segment.steps.start < until) {
        (true, _) => "fills what others leave".to_string(),
        (false, false) => "at once".to_string(),
        (false, true) if segment.steps.end <= until => format!("{chunks} chunks"),
        (false, true) => format!("{chunks} chunks until {until}"),
    }
}

fn summary(outcome: &Outcome, kept: &Kept) -> String {
    let mut segments = Table::new(["model", "steps", "units", "how", "from, us", "to, us"]);
    for (segment, (begin, end)) in outcome.schedule.segments.iter().zip(&outcome.timeline.segments)
    {
        segments.row([
            outcome.mix.models()[segment.model].name().to_string(),
            format!("{} to {}", segment.steps.start, segment.steps.end),
            segment.units.len().to_string(),
            how(segment),
            format!("{:.0}", begin.us()),
            format!("{:.0}", end.us()),
        ]);
    }
    let mut ways = Table::new(["way", "ms", "regulated is faster by"]);
    for way in outcome.ways() {
        let gain = outcome.time_us(way) / outcome.time_us(Way::Regulated);
        let ms = outcome.time_us(way) / 1e3;
        ways.row([outcome.name(way).to_string(), format!("{ms:.3}"), format!("{gain:.2}")]);
    }
    let shared = outcome.lockstep.as_ref().map_or(String::new(), |lockstep| {
        let is_faster = outcome.time_us(Way::SharedLaunches) < outcome.time_us(Way::Regulated);
        let faster = if is_faster { "faster" } else { "not faster" };
        format!(
            "shared launches are {faster} than the schedule: {} of {} steps are of several models, predicted {:.3} ms\n",
            lockstep.shared_count(),
            lockstep.sets.len(),
            lockstep.makespan.us() / 1e3,
        )
    });
    let unshared = outcome.unshared.as_ref().map_or(String::new(), |why| {
        format!("shared launches were left out, since they could not be compiled: {why}\n")
    });
    format!(
        "{}\n{}\n{shared}{unshared}coordinate descent by predictions alone: {:.3} ms\nschedule {}\npredicted {:.3} ms; {} schedules predicted, {} run; within 2 % of the best after {:.1} s, after {:.1} s of timing steps",
        segments.render(),
        ways.render(),
        outcome.coordinate_descent_us / 1e3,
        kept.origin(outcome),
        outcome.predicted_us / 1e3,
        outcome.evaluated,
        outcome.measured,
        outcome.settled().as_secs_f64(),
        outcome.profiling.as_secs_f64(),
    )
}
