//! Tries every candidate of every operator of a model, and then the model with the fastest of them.
//!
//! `cargo run --release -p weft-cpu --example tuning_bench MODEL [batch] [cores] [milliseconds per candidate]`: for each operator the
//! usual candidate beside the fastest, what that promises for the model, and what the model gains.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weft_cpu::CpuDevice;
use weft_device::{Device, Executable, KernelChoices, OperatorKey, Trial, TunableDevice, UnitSet};
use weft_ir::Value;
use weft_zoo::{ZooOptions, build, entry, sample_inputs};

/// Sequence length of models of text.
const SEQUENCE: usize = 128;

/// How often the model runs with either set of kernels.
const MODEL_RUNS: usize = 61;

struct Table(HashMap<OperatorKey, Arc<str>>);

impl KernelChoices for Table {
    fn choice(&self, operator: &OperatorKey, _: usize) -> Option<Arc<str>> {
        self.0.get(operator).cloned()
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The times of all steps whose kernels can be chosen, by operator.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, usual: usize| {
        arguments.get(index).map_or(Ok(usual), |text| text.parse::<usize>())
    };
    let name = arguments.first().map_or("resnet18", String::as_str);
    let (batch, cores, effort) = (number(1, 1)?, number(2, 1)?, number(3, 20)?);
    let effort = Duration::from_millis(effort as u64);
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
    let usual = partition.prepare(&*loaded, &shapes)?;

    let operators = device.operators(&*loaded, &shapes, cores)?;
    let mut bench = device.bench(&units)?;
    let mut choices = HashMap::new();
    let (mut before, mut after, mut trials) = (0.0, 0.0, 0);
    let start = Instant::now();
    for operator in &operators {
        let mut times: Vec<(f64, usize)> = Vec::new();
        for index in 0..operator.candidates().len() {
            match bench.try_candidate(&**operator, index, effort)? {
                Trial::Measured(measured) => times.push((measured.time.as_secs_f64(), index)),
                other => writeln!(out, "{}: {other:?}", operator.candidates()[index].name)?,
            }
        }
        trials += times.len();
        let first = times[0].0;
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        // The finalists once more, in turns with the usual one.
        let mut finalists: Vec<usize> = times.iter().take(4).map(|(_, index)| *index).collect();
        if !finalists.contains(&0) {
            finalists.push(0);
        }
        let mut again = vec![Vec::new(); finalists.len()];
        for _ in 0..5 {
            for (samples, &index) in again.iter_mut().zip(&finalists) {
                if let Trial::Measured(measured) =
                    bench.try_candidate(&**operator, index, effort)?
                {
                    samples.push(measured.time.as_secs_f64());
                }
            }
        }
        let again: Vec<f64> = again.iter_mut().map(|samples| median(samples)).collect();
        let best = (0..again.len()).min_by(|&a, &b| again[a].total_cmp(&again[b])).unwrap_or(0);
        let zero = finalists.iter().position(|&index| index == 0).unwrap_or(0);
        let (usual_time, best_time) = (again[zero], again[best]);
        let occurrences = operator.occurrences() as f64;
        before += usual_time * occurrences;
        after += best_time * occurrences;
        let best_name = &operator.candidates()[finalists[best]].name;
        writeln!(
            out,
            "{:70} x{:<2} {:4} candidates  {:9.1} us (first {:9.1})  best {:9.1}  {:5.1} %  {}",
            operator.key().operator,
            operator.occurrences(),
            operator.candidates().len(),
            usual_time * 1e6,
            first * 1e6,
            best_time * 1e6,
            (usual_time / best_time - 1.0) * 100.0,
            best_name
        )?;
        choices.insert(operator.key().clone(), Arc::from(best_name.as_str()));
    }
    writeln!(out, "{trials} trials in {:.1} s", start.elapsed().as_secs_f64())?;

    device.use_choices(Arc::new(Table(choices)));
    let tuned = partition.prepare(&*loaded, &shapes)?;
    let run = |executable: &dyn Executable| -> Result<f64, weft_device::DeviceError> {
        let start = Instant::now();
        executable.run(&inputs)?;
        Ok(start.elapsed().as_secs_f64())
    };
    let (mut usual_times, mut tuned_times) = (Vec::new(), Vec::new());
    for _ in 0..MODEL_RUNS {
        usual_times.push(run(&*usual)?);
        tuned_times.push(run(&*tuned)?);
    }
    let (usual_time, tuned_time) = (median(&mut usual_times), median(&mut tuned_times));
    writeln!(
        out,
        "{name}: operators {:.3} -> {:.3} ms, promised {:.3} ms; model {:.3} -> {:.3} ms, gained {:.3} ms ({:.1} %)",
        before * 1e3,
        after * 1e3,
        (before - after) * 1e3,
        usual_time * 1e3,
        tuned_time * 1e3,
        (usual_time - tuned_time) * 1e3,
        (usual_time / tuned_time - 1.0) * 100.0
    )?;
    Ok(())
}
