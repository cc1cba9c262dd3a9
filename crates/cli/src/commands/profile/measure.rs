//! Profiles of models, measured on the device at hand.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use weft_device::bucket_sizes;
use weft_scheduler::{Profile, ProfilePoint, ProfileSet, ProfiledDevice};

use super::model::{Case, ProfiledModel};
use super::record::{Earlier, Method, Record};
use super::{Options, bandwidth};
use crate::describe;
use crate::device::OpenDevice;
use crate::model_file;
use crate::progress;

/// Past this factor a latency is not explained by noise.
const CLEARLY_SLOWER: f64 = 1.1;
/// How long each case is measured where nothing is said: a run of a model on a GPU takes a fraction of one on a CPU.
const CPU_SECONDS: f64 = 0.5;
const GPU_SECONDS: f64 = 0.1;

/// What was found, and of which models nothing.
pub(super) struct Measured {
    pub(super) set: ProfileSet,
    pub(super) failures: Vec<String>,
}

/// Measures every model at every batch size on every number of units.
pub(super) fn measure(options: &Options) -> Result<Measured> {
    let batches = distinct(&options.batches, "--batches")?;
    let models = named(&options.models)?;
    let device = options.device.open_choosing(options.kernels)?;
    options.tuning.apply(&device)?;
    let seconds = options.seconds.unwrap_or(match device {
        OpenDevice::Cpu(_) => CPU_SECONDS,
        OpenDevice::Cuda(_) => GPU_SECONDS,
    });
    let time = Duration::try_from_secs_f64(seconds).context("--seconds")?;
    let earlier = match &options.output {
        Some(path) if options.add => Earlier::read(path)?,
        _ => None,
    };
    let about = profiled_device(&device, options, earlier.as_ref())?;
    let units = wanted_units(options, &about)?;
    let method = method(options, &device, seconds);
    let mut record = Record::begin(options.output.as_deref(), earlier, about, &method)?;
    let (kept, missing): (Vec<_>, Vec<_>) =
        models.into_iter().partition(|(name, _)| record.has(name));
    for (name, _) in kept {
        progress::note(format!("{name} is in the file already"));
    }

    let grid = Grid { batches: &batches, units: &units, time, options, device: &device };
    let mut count = CaseCount::new(missing.len() * batches.len() * units.len());
    let mut failures = Vec::new();
    for (name, given) in missing {
        let start = Instant::now();
        match grid.profile(&name, given, &mut count) {
            Ok(profile) => {
                record.add(name.clone(), profile)?;
                let seconds = start.elapsed().as_secs_f64();
                progress::note(format!("{name}: {seconds:.1} s, {}", count.in_words()));
            }
            // What is wrong with one model leaves the others.
            Err(error) => {
                failures.push(format!("{name}: {}", describe(&error)));
                progress::note(format!("{name} failed: {}", describe(&error)));
            }
        }
    }
    progress::clear();
    Ok(Measured { set: record.finish(), failures })
}

/// The models as they are named in the file, each once, and as they were given.
fn named(models: &[String]) -> Result<Vec<(String, &str)>> {
    let mut named: Vec<(String, &str)> = Vec::new();
    for model in models {
        let name = model_file::name_of(model)?;
        ensure!(named.iter().all(|(other, _)| *other != name), "two models are named '{name}'");
        named.push((name, model));
    }
    Ok(named)
}

fn profiled_device(
    device: &OpenDevice,
    options: &Options,
    earlier: Option<&Earlier>,
) -> Result<ProfiledDevice> {
    let about = device.as_device().description();
    let bandwidth_bytes_per_s = match (options.bandwidth, earlier) {
        // Measured anew it would differ a little, and the file has one for all its models.
        (None, Some(earlier)) => earlier.bandwidth_bytes_per_s(),
        (given, _) => bandwidth::bytes_per_s(given, device)?,
    };
    Ok(ProfiledDevice {
        name: about.name,
        units: u32::try_from(device.units().len())?,
        unit: about.unit,
        bandwidth_bytes_per_s,
        memory_bytes: about.memory_bytes.context("how much memory the device has is not known")?,
    })
}

/// The numbers of units that are asked for; where none are, powers of two, and all.
fn wanted_units(options: &Options, device: &ProfiledDevice) -> Result<Vec<u32>> {
    if options.units.is_empty() {
        let sizes = bucket_sizes(device.units as usize);
        return Ok(sizes.into_iter().map(|units| units as u32).collect());
    }
    let units = distinct(&options.units, "--units")?;
    if let Some(&most) = units.iter().find(|&&units| units > device.units) {
        let (unit, all) = (&device.unit, device.units);
        anyhow::bail!("--units: {most} asked for, the device has {all} (a unit is one {unit})");
    }
    Ok(units)
}

/// Positive numbers in increasing order, each once.
fn distinct(numbers: &[u32], option: &str) -> Result<Vec<u32>> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    ensure!(numbers.first().is_some_and(|&least| least > 0), "{option} must be at least 1");
    Ok(numbers)
}

/// The cases of every model.
struct Grid<'a> {
    batches: &'a [u32],
    units: &'a [u32],
    time: Duration,
    options: &'a Options,
    device: &'a OpenDevice,
}

impl Grid<'_> {
    /// Measures all cases of one model.
    fn profile(&self, name: &str, given: &str, count: &mut CaseCount) -> Result<Profile> {
        progress::show(format!("{name}: loading"));
        let model = ProfiledModel::load(&model_file::resolve(given)?, self.device)?;
        let mut points = Vec::new();
        let mut memory_bytes = 0;
        for &batch in self.batches {
            for &units in self.units {
                count.begin_next();
                progress::show(format!(
                    "{name}, batch {batch}, {units} units: {}",
                    count.in_words()
                ));
                let timed = model.time(&Case {
                    batch: batch as usize,
                    units: self.device.units().iter().take(units as usize).collect(),
                    dimensions: &self.options.dimensions,
                    time: self.time,
                })?;
                memory_bytes = timed.memory_bytes.max(memory_bytes);
                let (latency, dram_bytes) = (timed.latency, timed.dram_bytes);
                points.push(ProfilePoint { batch, units, latency, dram_bytes });
            }
        }
        for point in slower_on_more_units(&points) {
            progress::note(format!(
                "{name}, batch {}: slower on {} units than on fewer; is something else running?",
                point.batch, point.units
            ));
        }
        Profile::new(&points, memory_bytes).with_context(|| format!("the profile of '{name}'"))
    }
}

/// Which case of how many is measured, and since when.
struct CaseCount {
    current: usize,
    all: usize,
    start: Instant,
}

impl CaseCount {
    fn new(all: usize) -> Self {
        Self { current: 0, all, start: Instant::now() }
    }

    fn begin_next(&mut self) {
        self.current += 1;
    }

    fn in_words(&self) -> String {
        let seconds = self.start.elapsed().as_secs_f64();
        format!("case {} of {}, {seconds:.0} s", self.current, self.all)
    }
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

/// How the profiles are measured, for the file.
fn method(options: &Options, device: &OpenDevice, seconds: f64) -> Method {
    let common = match device {
        OpenDevice::Cpu(_) => cpu_method(seconds),
        OpenDevice::Cuda(device) => {
            let kernels = options.kernels;
            gpu_method(seconds, device.precision().name(), kernels.choice(), kernels.among())
        }
    };
    let bandwidth = match options.bandwidth {
        Some(_) => "as given on the command line",
        None => bandwidth::in_words(device),
    };
    let note = options.note.iter().flat_map(|note| note.lines().map(|line| format!("# {line}\n")));
    let remarks = format!("# Bandwidth is {bandwidth}.\n{}", note.collect::<String>());
    Method { common, remarks }
}

fn cpu_method(seconds: f64) -> String {
    format!(
        "# Measured by `weft profile`: median latencies, {seconds} s per case, inputs and outputs in the host's memory.\n\
         # dram_mb is an estimate: weights once, and the arena of activations twice.\n"
    )
}

fn gpu_method(seconds: f64, precision: &str, choice: &str, among: &str) -> String {
    format!(
        "# Measured by `weft profile`: median latencies, {seconds} s per case, from launch until the end is seen, with\n\
         # inputs in the GPU's memory already, as copies overlap with other runs in serving. Models run at {precision};\n\
         # kernels were chosen as {choice}, {among}.\n\
         # dram_mb is an estimate: weights once (of tables the rows that are read), and what steps read and write whose values\n\
         # exceed half of the L2 cache.\n"
    )
}

#[cfg(test)]
mod tests {
    use weft_scheduler::Span;

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
    fn two_models_of_one_name_are_refused() {
        let names = |models: &[&str]| {
            let models: Vec<String> = models.iter().map(|model| model.to_string()).collect();
            named(&models).map(|named| named.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["a/one.onnx", "zoo:resnet18"]).unwrap(), ["one", "resnet18"]);
        let error = names(&["a/one.onnx", "b/one.onnx"]).unwrap_err().to_string();
        assert!(error.contains("'one'"), "{error}");
    }

    #[test]
    fn what_must_not_be_mixed_is_what_files_have_in_common() {
        let half = gpu_method(0.1, "f16", "measured", "Weft's own alone");
        for other in [
            gpu_method(0.2, "f16", "measured", "Weft's own alone"),
            gpu_method(0.1, "f32", "measured", "Weft's own alone"),
            gpu_method(0.1, "f16", "estimated", "Weft's own alone"),
            gpu_method(0.1, "f16", "measured", "those of cuBLASLt and cuDNN among them"),
            cpu_method(0.1),
        ] {
            assert!(!other.starts_with(&half), "{other}");
            assert!(other.lines().all(|line| line.starts_with("# ")), "{other}");
        }
    }
}
