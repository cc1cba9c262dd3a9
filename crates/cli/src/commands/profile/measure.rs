//! Profiles of models, measured on the device at hand.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use weft_device::{ExecutionReport, UnitSet, bucket_sizes};
use weft_scheduler::{Profile, ProfilePoint, ProfileSet, ProfiledDevice, Span};

use super::{Options, bandwidth};
use crate::bench::Subject;
use crate::device::OpenDevice;
use crate::model_file;
use crate::progress;

/// Past this factor a latency is not explained by noise.
const CLEARLY_SLOWER: f64 = 1.1;

/// Measures every model at every batch size on every number of units.
pub(super) fn measure(options: &Options) -> Result<ProfileSet> {
    let budget = Duration::try_from_secs_f64(options.seconds).context("--seconds")?;
    let batches = distinct(&options.batches, "--batches")?;
    let device = options.device.open()?;
    let about = profiled_device(&device, options)?;
    let every = bucket_sizes(about.units as usize);
    let every: Vec<u32> = every.into_iter().map(|units| units as u32).collect();
    let units = if options.units.is_empty() { every } else { distinct(&options.units, "--units")? };
    if let Some(&most) = units.iter().find(|&&units| units > about.units) {
        let (unit, all) = (&about.unit, about.units);
        anyhow::bail!("--units: {most} asked for, the device has {all} (a unit is one {unit})");
    }
    let mut profiles = BTreeMap::new();
    for model in &options.models {
        let path = model_file::resolve(model)?;
        let name = model_file::name(&path);
        ensure!(!profiles.contains_key(&name), "two models are named '{name}'");
        let mut points = Vec::new();
        let mut memory_bytes = 0;
        for &batch in &batches {
            for &units in &units {
                progress::show(format!("{name}, batch {batch}, {units} of {} units", about.units));
                let case = Case { batch, units, budget };
                let (point, report) = measure_case(&path, case, &device, options)?;
                let memory = report.weight_bytes + report.arena_bytes;
                memory_bytes = memory_bytes.max(memory as u64);
                points.push(point);
            }
        }
        for point in slower_on_more_units(&points) {
            progress::note(format!(
                "{name}, batch {}: slower on {} units than on fewer; is something else running?",
                point.batch, point.units
            ));
        }
        let profile = Profile::new(&points, memory_bytes)
            .with_context(|| format!("the profile of '{name}'"))?;
        profiles.insert(name, profile);
    }
    progress::clear();
    Ok(ProfileSet { device: about, profiles })
}

fn profiled_device(device: &OpenDevice, options: &Options) -> Result<ProfiledDevice> {
    let about = device.as_device().description();
    let gb_per_s = match options.bandwidth {
        Some(given) => given,
        None => bandwidth::measured_gb_per_s(device)?,
    };
    ensure!(gb_per_s > 0.0 && gb_per_s.is_finite(), "--bandwidth must be above 0");
    Ok(ProfiledDevice {
        name: about.name,
        units: u32::try_from(device.units().len())?,
        unit: about.unit,
        bandwidth_bytes_per_s: (gb_per_s * 1e9).round(),
        memory_bytes: about.memory_bytes.context("how much memory the device has is not known")?,
    })
}

/// Positive numbers in increasing order, each once.
fn distinct(numbers: &[u32], option: &str) -> Result<Vec<u32>> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    ensure!(numbers.first().is_some_and(|&least| least > 0), "{option} must be at least 1");
    Ok(numbers)
}

struct Case {
    batch: u32,
    units: u32,
    budget: Duration,
}

fn measure_case(
    path: &Path,
    Case { batch, units, budget }: Case,
    device: &OpenDevice,
    options: &Options,
) -> Result<(ProfilePoint, ExecutionReport)> {
    let set: UnitSet = device.units().iter().take(units as usize).collect();
    let dimensions = &options.dimensions;
    let subject = Subject::new(path, batch as usize, dimensions, device.as_device(), &set)?;
    let latency = Span::from_us(subject.median_ms(budget)? * 1e3);
    let report = subject.report().clone();
    Ok((ProfilePoint { batch, units, latency, dram_bytes: dram_bytes(&report) }, report))
}

/// Points that took clearly longer than the same batch on fewer units, which a profile smooths away: a sign that others
/// used the device meanwhile.
fn slower_on_more_units(points: &[ProfilePoint]) -> Vec<ProfilePoint> {
    let is_slower = |point: &&ProfilePoint| {
        points.iter().any(|other| {
            let is_smaller = other.batch == point.batch && other.units < point.units;
            is_smaller && point.latency > other.latency * CLEARLY_SLOWER
        })
    };
    points.iter().filter(is_slower).copied().collect()
}

/// The weights read once, and the arena of activations written once and read once: less than what moves where buffers are
/// used again and again, more where caches keep them.
fn dram_bytes(report: &ExecutionReport) -> f64 {
    report.weight_bytes as f64 + 2.0 * report.arena_bytes as f64
}

/// What a reader of the file must know, as its first lines.
pub(super) fn comment(options: &Options) -> String {
    let note = options.note.iter().flat_map(|note| note.lines().map(|line| format!("# {line}\n")));
    let bandwidth = match options.bandwidth {
        Some(_) => "as given on the command line",
        None => "measured by reading large arrays on all units",
    };
    format!(
        "# Measured by `weft profile`: median latencies, {} s per case, inputs and outputs in the host's memory.\n\
         # dram_mb is an estimate: weights once, and the arena of activations twice. Bandwidth is {bandwidth}.\n\
         {}\n",
        options.seconds,
        note.collect::<String>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_sorted_and_taken_once() {
        assert_eq!(distinct(&[8, 1, 8, 2], "--batches").unwrap(), [1, 2, 8]);
        assert!(distinct(&[0, 1], "--batches").is_err());
        assert!(distinct(&[], "--batches").is_err());
    }

    #[test]
    fn points_that_more_units_made_slower_are_found() {
        let point = |batch, units, us| ProfilePoint {
            batch,
            units,
            latency: Span::from_us(us),
            dram_bytes: 0.0,
        };
        let disturbed = point(1, 4, 70.0);
        let points = [point(1, 1, 100.0), point(1, 2, 60.0), disturbed, point(8, 1, 900.0)];
        assert_eq!(slower_on_more_units(&points), [disturbed]);
        assert_eq!(slower_on_more_units(&[point(1, 1, 60.0), point(1, 2, 62.0)]), []);
    }

    #[test]
    fn memory_moves_weights_once_and_activations_twice() {
        let report =
            ExecutionReport { weight_bytes: 1000, arena_bytes: 30, ..ExecutionReport::default() };
        assert_eq!(dram_bytes(&report), 1060.0);
    }
}
