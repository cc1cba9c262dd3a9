//! `weft plan`: which partitions a workload needs, who shares which, at what batch, and whether every objective holds.

mod grid;
mod label;
mod mosaic;
mod paint;
mod picture;
mod proportions;
mod report;
mod serving;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;
use weft_scheduler::plan::{DeviceFacts, Effort, ModelDemand, plan_partitions};
use weft_scheduler::{Span, Time};
use weft_simulator::{Load, SimulatedModel, World};

use crate::files;
use crate::terminal;
use crate::workload::{Workload, WorkloadOptions};
use grid::Grid;
use mosaic::Mosaic;
use report::Report;
use serving::Serving;

/// What the command exits with when not every objective holds.
const DOES_NOT_FIT: u8 = 1;

const EXAMPLES: &str = "\
Examples:
  # the plan, drawn in the terminal and to files
  weft plan workloads/four-models.toml --svg plan.svg --json plan.json
  # at six times the rates: what falls short, and what would help
  weft plan workloads/four-models.toml --scale 6
  # with objectives half as long
  weft plan workloads/four-models.toml --slo-scale 0.5
  # with what Weft's policy serves each model with
  weft plan workloads/four-models.toml --layout

In the drawing a partition is as wide as it has units, and a band is as high
as the share of the partition's time that a model takes; the rest of the time
is empty. Loads that change are planned for at their highest rate, or at --at.

Below the plan stands the layout that Weft's own policy serves with.

Exit code: 0 when every SLO holds, 1 when something does not fit, 2 for bad
input.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(flatten)]
    workload: WorkloadOptions,
    /// Plan for the rates at this time, not for the highest
    #[arg(long, value_name = "SECONDS")]
    at: Option<f64>,
    /// Also list which partitions Weft's policy serves each model with, at what largest batch
    #[arg(long)]
    layout: bool,
    /// Also write the plan as JSON to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also draw the plan as an SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    if let Some(seconds) = options.at {
        ensure!(seconds >= 0.0 && seconds.is_finite(), "--at must be a time of the workload");
    }
    let workload = options.workload.read()?;
    ensure!(
        workload.devices == 1,
        "this workload has {} devices, and a plan is of one; weft simulate divides models among them",
        workload.devices
    );
    let title = workload.title();
    let Workload { name, world, device, .. } = workload;
    let at = options.at.map(|seconds| Time::after_start(Span::from_s(seconds)));
    let demands = demands(&world, at);
    let facts = DeviceFacts { units: world.units, memory_bytes: world.memory_bytes };
    let plan = plan_partitions(&demands, &facts, Effort::Thorough);
    let mosaic = Mosaic::new(&plan, &demands);
    let report = Report { plan: &plan, demands: &demands, units: world.units };
    let serving = Serving::rehearsed(&world, &demands);

    if let Some(path) = &options.json {
        let mut json = report.json(&name, &device.name);
        json["layout"] = serving.json();
        files::write(path, &format!("{json:#}\n"))?;
    }
    if let Some(path) = &options.svg {
        files::write(path, &picture::svg(&mosaic, &title, &device.unit))?;
    }
    let grid = Grid::new(&mosaic, terminal::width());
    let mut parts = vec![
        format!("{title}, a unit is one {}", device.unit),
        paint::painted(&grid, terminal::has_colours()),
        report.table().render(),
        format!("{}\n{}", report.sentences().join("\n"), report.verdict()),
        terminal::wrapped(&serving.sentence(), terminal::width()),
    ];
    if options.layout {
        parts.push(serving.table().render());
    }
    terminal::print(&parts.join("\n\n"))?;
    Ok(match plan.shortfalls.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(DOES_NOT_FIT),
    })
}

fn demands(world: &World, at: Option<Time>) -> Vec<ModelDemand<'_>> {
    let demand = |model| {
        let model: &SimulatedModel = model;
        ModelDemand {
            name: model.name.clone(),
            profile: &model.profile,
            slowdown: 1.0,
            slo: model.slo,
            rate_per_s: rate_per_s(model, world.units, at),
            weight: model.weight,
            max_batch: model.profile.batches().last().copied().unwrap_or(1),
        }
    };
    world.models.iter().map(demand).collect()
}

/// What is asked of a model at a time, or at most. Clients who wait ask for no more than they do when each answer takes as
/// long as one item alone on the whole device.
fn rate_per_s(model: &SimulatedModel, units: u32, at: Option<Time>) -> f64 {
    match (&model.load, at) {
        (Load::ClosedLoop { clients, think }, _) => {
            f64::from(*clients) / (*think + model.profile.latency(1, units)).seconds()
        }
        (load, Some(at)) => load.rate_per_s(at),
        (load, None) => load.greatest_per_s(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weft_scheduler::{Profile, ProfilePoint};

    use super::*;

    #[test]
    fn loads_that_change_are_planned_at_their_highest_and_clients_at_what_answers_allow() {
        let latency = Span::from_us(1000.0);
        let point = ProfilePoint { batch: 1, units: 2, latency, dram_bytes: 0.0 };
        let rate = |load, at| {
            let profile = Arc::new(Profile::new(&[point], 0).unwrap());
            let name = "net".to_string();
            let model = SimulatedModel {
                name,
                profile,
                load,
                slo: None,
                weight: 1.0,
                priority: 0,
                group: None,
                late: None,
            };
            rate_per_s(&model, 2, at)
        };
        let wave = Load::SquareWave {
            high_per_s: 90.0,
            low_per_s: 10.0,
            period: Span::from_s(2.0),
            share: 0.5,
            phase: Span::ZERO,
        };
        assert_eq!(rate(wave.clone(), None), 90.0);
        assert_eq!(rate(wave, Some(Time::after_start(Span::from_s(1.5)))), 10.0);
        assert_eq!(rate(Load::ClosedLoop { clients: 6, think: Span::ZERO }, None), 6000.0);
        let thinking = Load::ClosedLoop { clients: 6, think: Span::from_us(2000.0) };
        assert_eq!(rate(thinking, None), 2000.0);
    }
}
