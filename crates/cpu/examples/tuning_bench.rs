//! Tries every candidate of every operator of a model, and then the model with the fastest of them.
//!
//! `cargo run --release -p weft-cpu --example tuning_bench MODEL [batch] [cores] [milliseconds per candidate]`: for each operator the
//! usual candidate beside the fastest, what that promises for the model, and what the model's steps gain. With `DUMP` in the
//! environment, every candidate.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weft_cpu::CpuDevice;
use weft_device::{
    Bench, Device, DeviceError, Executable, KernelChoices, Measurement, OperatorKey, Trial,
    TunableDevice, TunableOperator, UnitSet,
};
use weft_ir::Value;
use weft_zoo::{ZooOptions, build, entry, sample_inputs};

/// Sequence length of models of text.
const SEQUENCE: usize = 128;

/// How often the model is loaded and prepared anew with either set of kernels, since where weights lie in memory makes a
/// difference of its own; and how often it then runs.
const PREPARATIONS: usize = 6;
const MODEL_RUNS: usize = 25;

/// How many candidates are timed again, and how often, in turns.
const FINALISTS: usize = 5;
const ROUNDS: usize = 7;

/// A candidate must promise this to be taken instead of the usual one.
const LEAST_GAIN: f64 = 0.01;

/// A measurement is repeated while the control shows more than this, so often at most.
const MOST_INTERFERENCE: f64 = 1.1;
const MOST_ATTEMPTS: usize = 6;

struct Table(HashMap<OperatorKey, Arc<str>>);

impl KernelChoices for Table {
    fn choice(&self, operator: &OperatorKey, _: usize) -> Option<Arc<str>> {
        self.0.get(operator).cloned()
    }
}

/// What others do on the machine adds to times and never takes away, so the lower quartile says more than the median.
fn lower_quartile(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 4]
}

/// The least disturbed of a few measurements, in seconds; infinite where the candidate does not compute the operator.
fn measure(
    bench: &mut dyn Bench,
    operator: &dyn TunableOperator,
    candidate: usize,
    effort: Duration,
) -> Result<f64, DeviceError> {
    let mut calmest: Option<Measurement> = None;
    for _ in 0..MOST_ATTEMPTS {
        let Trial::Measured(measured) = bench.try_candidate(operator, candidate, effort)? else {
            return Ok(f64::INFINITY);
        };
        if calmest.is_none_or(|known| measured.interference < known.interference) {
            calmest = Some(measured);
        }
        if measured.interference <= MOST_INTERFERENCE {
            break;
        }
    }
    Ok(calmest.map_or(f64::INFINITY, |measured| measured.time.as_secs_f64()))
}

/// What the steps of a model take together with each set of kernels, in turns.
fn step_seconds(
    executables: [&dyn Executable; 2],
    inputs: &[Value],
) -> Result<[f64; 2], DeviceError> {
    let mut samples =
        executables.map(|executable| vec![Vec::new(); executable.report().steps.len()]);
    for _ in 0..MODEL_RUNS {
        for (executable, samples) in executables.iter().zip(&mut samples) {
            let times = executable.time_steps(inputs)?;
            for (samples, time) in samples.iter_mut().zip(times) {
                samples.push(time.as_secs_f64());
            }
        }
    }
    Ok(samples.map(|mut steps| steps.iter_mut().map(|times| lower_quartile(times)).sum()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, usual: usize| {
        arguments.get(index).map_or(Ok(usual), |text| text.parse::<usize>())
    };
    let name = arguments.first().map_or("resnet18", String::as_str);
    let (batch, cores, effort) = (number(1, 1)?, number(2, 1)?, number(3, 20)?);
    let effort = Duration::from_millis(effort as u64);
    let is_dumped = std::env::var_os("DUMP").is_some();
    let mut out = std::io::stdout().lock();

    let options = ZooOptions::default();
    let graph = build(name, &options)?;
    let inputs: Vec<Value> = sample_inputs(entry(name)?, &options, batch, SEQUENCE)?
        .into_iter()
        .map(Value::from)
        .collect();
    let shapes: Vec<Vec<usize>> = inputs
        .iter()
        .map(|input| input.tensor().map(|tensor| tensor.shape().to_vec()).unwrap_or_default())
        .collect();
    let device = CpuDevice::new()?;
    let units: UnitSet = device.units().iter().skip(device.size().saturating_sub(cores)).collect();
    let partition = device.partition(&units)?;
    let loaded = device.load(name, &graph)?;

    let mut bench = device.bench(&units)?;
    let mut choices = HashMap::new();
    let (mut before, mut after, mut trials) = (0.0, 0.0, 0);
    let start = Instant::now();
    for operator in device.operators(&*loaded, &shapes, cores)? {
        let candidates = operator.candidates();
        let mut times: Vec<(f64, usize)> = Vec::new();
        for (index, candidate) in candidates.iter().enumerate() {
            let seconds = measure(&mut *bench, &*operator, index, effort)?;
            times.push((seconds, index));
            if is_dumped {
                let (key, us) = (&operator.key().operator, seconds * 1e6);
                writeln!(out, "D\t{key}\t{}\t{}\t{us:.2}", operator.occurrences(), candidate.name)?;
            }
        }
        trials += times.len();
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut finalists: Vec<usize> =
            times.iter().map(|(_, index)| *index).filter(|index| *index != 0).collect();
        finalists.truncate(FINALISTS);
        finalists.insert(0, 0);
        let mut finals = vec![Vec::new(); finalists.len()];
        for _ in 0..ROUNDS {
            for (samples, &index) in finals.iter_mut().zip(&finalists) {
                samples.push(measure(&mut *bench, &*operator, index, effort)?);
            }
        }
        let finals: Vec<f64> = finals.iter_mut().map(|samples| lower_quartile(samples)).collect();
        let mut best = 0;
        for index in 1..finals.len() {
            if finals[index] < finals[best] && finals[index] * (1.0 + LEAST_GAIN) < finals[0] {
                best = index;
            }
        }
        before += finals[0] * operator.occurrences() as f64;
        after += finals[best] * operator.occurrences() as f64;
        let best_name = &candidates[finalists[best]].name;
        writeln!(
            out,
            "{:72} x{:<2} {:4} candidates {:8.1} us, best {:8.1} {:+5.1} %  {best_name}",
            operator.key().operator,
            operator.occurrences(),
            candidates.len(),
            finals[0] * 1e6,
            finals[best] * 1e6,
            (finals[0] / finals[best] - 1.0) * 100.0,
        )?;
        choices.insert(operator.key().clone(), Arc::from(best_name.as_str()));
    }
    writeln!(out, "{trials} trials in {:.1} s", start.elapsed().as_secs_f64())?;

    let sets = [Arc::new(Table(HashMap::new())), Arc::new(Table(choices))];
    let mut totals = [0.0; 2];
    for _ in 0..PREPARATIONS {
        let prepare = |set: &Arc<Table>| {
            device.use_choices(set.clone());
            partition.prepare(&*device.load(name, &graph)?, &shapes)
        };
        let [usual, tuned] = [prepare(&sets[0])?, prepare(&sets[1])?];
        let seconds = step_seconds([&*usual, &*tuned], &inputs)?;
        totals.iter_mut().zip(seconds).for_each(|(total, seconds)| *total += seconds);
    }
    let [usual_seconds, tuned_seconds] = totals.map(|total| total / PREPARATIONS as f64);
    writeln!(
        out,
        "{name}, batch {batch}, {cores} cores: operators {:.3} -> {:.3} ms promise {:+.1} %; steps of the model {:.3} -> {:.3} ms, {:+.1} %",
        before * 1e3,
        after * 1e3,
        (usual_seconds / (usual_seconds - (before - after)) - 1.0) * 100.0,
        usual_seconds * 1e3,
        tuned_seconds * 1e3,
        (usual_seconds / tuned_seconds - 1.0) * 100.0,
    )?;
    Ok(())
}
