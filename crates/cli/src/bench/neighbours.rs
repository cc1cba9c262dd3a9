//! `weft bench neighbours`: do two models on disjoint partitions disturb each other?

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use weft_cpu::CpuDevice;
use weft_device::UnitSet;

use super::statistics::median;
use super::timing::Subject;
use crate::model_file::{self, DimensionOptions};
use crate::progress;
use crate::table::Table;
use crate::terminal;

#[derive(Args)]
pub(crate) struct Options {
    /// Two models: ONNX files, or zoo:NAME
    #[arg(num_args = 2, default_values = ["zoo:resnet50", "zoo:mobilenet_v2"])]
    models: Vec<String>,
    /// Seconds per turn
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Turns alone and together, interleaved
    #[arg(long, default_value_t = 5)]
    turns: usize,
    #[command(flatten)]
    dimensions: DimensionOptions,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let device = CpuDevice::new()?;
    let units: Vec<usize> = device.units().iter().collect();
    ensure!(units.len() >= 2, "two partitions need two cores, the device has {}", units.len());
    ensure!(options.turns > 0, "at least one turn is needed");
    let subjects = [0, 1].map(|index| {
        let path = model_file::resolve(&options.models[index])?;
        let unit: UnitSet = [units[index]].into_iter().collect();
        Subject::new(&path, 1, &options.dimensions, &device, &unit)
    });
    let [first, second] = subjects;
    let subjects = [first?, second?];
    let turn = Duration::from_secs_f64(options.seconds.max(0.0));
    let mut alone = [Vec::new(), Vec::new()];
    let mut together = [Vec::new(), Vec::new()];
    for round in 0..options.turns {
        progress::show(format!("turn {} of {}", round + 1, options.turns));
        for index in [0, 1] {
            alone[index].push(rate(&subjects[index], turn, &AtomicBool::new(false))?);
        }
        let (first, second) = both(&subjects, turn)?;
        together[0].push(first);
        together[1].push(second);
    }
    progress::clear();
    let mut table = Table::new(["model", "core", "alone, runs/s", "together, runs/s", "kept"]);
    for index in [0, 1] {
        let kept: Vec<f64> =
            together[index].iter().zip(&alone[index]).map(|(both, solo)| both / solo).collect();
        table.row([
            options.models[index].clone(),
            units[index].to_string(),
            format!("{:.2}", median(&alone[index])),
            format!("{:.2}", median(&together[index])),
            format!("{:.3}", median(&kept)),
        ]);
    }
    terminal::print(&table.render())?;
    Ok(())
}

/// Runs per second over one turn, or until told to stop.
fn rate(subject: &Subject, turn: Duration, stop: &AtomicBool) -> Result<f64> {
    subject.time_once_ms()?;
    let start = Instant::now();
    let mut runs = 0u32;
    while runs == 0 || start.elapsed() < turn && !stop.load(Ordering::Relaxed) {
        subject.executable.run(&subject.inputs)?;
        runs += 1;
    }
    Ok(f64::from(runs) / start.elapsed().as_secs_f64())
}

fn both(subjects: &[Subject; 2], turn: Duration) -> Result<(f64, f64)> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| rate(&subjects[1], turn, &stop));
        let first = rate(&subjects[0], turn, &stop);
        let second = other.join().map_err(|_| anyhow::anyhow!("a measuring thread panicked"))?;
        Ok((first?, second?))
    })
}
