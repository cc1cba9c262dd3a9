//! Tenants on a GPU: one after another, on a partition each, side by side on branches of one graph, and as a group. What is
//! timed is the GPU's work, with inputs and outputs in its memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::{Value as Json, json};
use weft_cuda::{
    CudaDevice, CudaExecutable, CudaGroup, CudaModel, CudaOptions, CudaPartition, SideBySide,
};
use weft_device::{Group, GroupEntry, GroupMember, StepReport, UnitSet};
use weft_ir::Value;

use super::{Options, graph};
use crate::bench::statistics::{geometric_mean, median};
use crate::device::OpenDevice;
use crate::model_file;
use crate::outputs::difference;
use crate::progress;
use crate::table::Table;
use crate::terminal;

/// The models where none is named.
const MODELS: [&str; 2] = ["zoo:resnet18", "zoo:mobilenet_v2"];

/// For how long each way runs in a round, at least twice.
const TURN: Duration = Duration::from_millis(60);

/// How far the results of a group may be from those of models apart, whose kernels differ.
const TOLERANCE: f64 = 2e-2;

pub(super) fn run(options: &Options) -> Result<()> {
    let device = options.device.open_choosing(options.kernels)?;
    let units = device.chosen_units(None, options.sms)?;
    let sms = device.size_of(&units);
    let OpenDevice::Cuda(device) = device else { bail!("this is for GPUs") };
    let mut table = Table::new([
        "model",
        "tenants",
        "one after another, ms",
        "a partition each, ms",
        "side by side, ms",
        "as a group, ms",
        "requests/s",
        "of one after another",
        "of the better other",
        "least",
    ]);
    let (mut values, mut gains): (Vec<Json>, Vec<f64>) = (Vec::new(), Vec::new());
    for name in &options.models(&MODELS)? {
        for count in options.tenants(32) {
            progress::show(format!("{name}, {count} tenants: preparing"));
            let tenants = Tenants::new(options, &device, &units, name, count)?;
            progress::show(format!("{name}, {count} tenants: checking"));
            tenants.check()?;
            progress::show(format!("{name}, {count} tenants: timing"));
            let times = tenants.times(options.rounds)?;
            let of = |way: Way| {
                median(&times.iter().map(|round| round[way as usize]).collect::<Vec<_>>())
            };
            let better = |round: &[f64; 4]| {
                round[Way::Partitions as usize].min(round[Way::SideBySide as usize])
            };
            let of_better: Vec<f64> =
                times.iter().map(|round| better(round) / round[Way::Group as usize]).collect();
            let of_apart: Vec<f64> = times
                .iter()
                .map(|round| round[Way::Apart as usize] / round[Way::Group as usize])
                .collect();
            let least = of_better.iter().copied().fold(f64::INFINITY, f64::min);
            let per_s = count as f64 / of(Way::Group) * 1e3;
            let ms = |way| format!("{:.3}", of(way));
            table.row([
                name.clone(),
                count.to_string(),
                ms(Way::Apart),
                ms(Way::Partitions),
                ms(Way::SideBySide),
                ms(Way::Group),
                format!("{per_s:.0}"),
                format!("{:.2}", median(&of_apart)),
                format!("{:.2}", median(&of_better)),
                format!("{least:.2}"),
            ]);
            gains.push(median(&of_better));
            values.push(json!({
                "model": name, "tenants": count, "sms": sms, "apart_ms": of(Way::Apart),
                "partitions_ms": of(Way::Partitions), "side_by_side_ms": of(Way::SideBySide),
                "group_ms": of(Way::Group), "requests_per_s": per_s,
                "gain_over_apart": median(&of_apart), "gain_over_better": median(&of_better),
                "least_gain": least, "steps": steps(&tenants.group, count)?,
            }));
        }
    }
    progress::clear();
    let text = match options.json {
        true => serde_json::to_string_pretty(&values)?,
        false => format!(
            "on {sms} SMs, {}:\n{}\ngeometric mean of the gains over the better of the others {:.3}",
            device.precision().name(),
            table.render(),
            geometric_mean(&gains)
        ),
    };
    Ok(terminal::print(&text)?)
}

/// What each step of a group is computed by, and how long it takes alone.
fn steps(group: &CudaGroup, count: usize) -> Result<Vec<Json>> {
    let steps = group.time_steps(count)?.into_iter();
    let value = |(step, time): (StepReport, Duration)| {
        json!({
            "node": step.node, "operator": step.operator, "kernel": step.kernel,
            "flops": step.flops, "us": time.as_secs_f64() * 1e6,
        })
    };
    Ok(steps.map(value).collect())
}

/// How tenants share the SMs.
#[derive(Clone, Copy)]
enum Way {
    Apart,
    Partitions,
    SideBySide,
    Group,
}

/// Tenants of one model's structure, each with a request of its own.
struct Tenants {
    apart: Vec<CudaExecutable>,
    partitions: Vec<CudaExecutable>,
    side_by_side: SideBySide,
    group: CudaGroup,
    members: Vec<GroupMember>,
    inputs: Vec<Vec<Value>>,
    _models: Vec<Arc<CudaModel>>,
}

impl Tenants {
    fn new(
        options: &Options,
        device: &CudaDevice,
        units: &UnitSet,
        name: &str,
        count: usize,
    ) -> Result<Self> {
        let first = graph(name, 0)?;
        let shapes = options.dimensions.shapes_among(&first, 1)?;
        let load = |tenant: usize| -> Result<Arc<CudaModel>> {
            let graph = graph(name, tenant as u64)?;
            let name = format!("{name} {tenant}");
            Ok(device.load_with_precision(&name, &graph, device.precision()))
        };
        let models = (0..count).map(load).collect::<Result<Vec<_>>>()?;
        let whole = device.cuda_partition(units)?;
        let parts = parts(device, units)?;
        let mut apart = Vec::new();
        let mut partitions = Vec::new();
        let mut beside = Vec::new();
        for (tenant, model) in models.iter().enumerate() {
            apart.push(whole.prepare_model(model, &shapes)?);
            partitions.push(parts[tenant % parts.len()].prepare_model(model, &shapes)?);
            beside.push(whole.beside()?.prepare_model(model, &shapes)?);
        }
        let (group, first_member) = whole.group_of(&models[0], &shapes, count)?;
        let mut members = vec![first_member];
        for model in &models[1..] {
            members.push(group.join(&**model)?);
        }
        let inputs = (0..count as u64).map(|seed| model_file::random_values(&first, &shapes, seed));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let side_by_side = SideBySide::new(beside)?;
        for all in [&apart[..], &partitions, side_by_side.executables()] {
            for (executable, inputs) in all.iter().zip(&inputs) {
                executable.write_inputs(inputs)?;
            }
        }
        Ok(Self { apart, partitions, side_by_side, group, members, inputs, _models: models })
    }

    fn run_group(&self, requests: &[usize]) -> Result<Vec<Vec<Value>>> {
        let entry = |&tenant: &usize| GroupEntry {
            member: self.members[tenant],
            inputs: &self.inputs[tenant],
        };
        let entries: Vec<GroupEntry<'_>> = requests.iter().map(entry).collect();
        self.group.run(&entries).into_iter().map(|answer| Ok(answer?)).collect()
    }

    /// Whether all ways have the same results: a group to the bit those that each tenant has when the launch is its own,
    /// and to within rounding those of other kernels.
    fn check(&self) -> Result<()> {
        let count = self.members.len();
        for tenant in [0, count / 2, count - 1] {
            let own = self.run_group(&vec![tenant; count])?;
            let mixed = self.run_group(&(0..count).collect::<Vec<_>>())?;
            let is_equal = own.iter().all(|one| *one == mixed[tenant]);
            ensure!(is_equal, "tenant {tenant} has other results beside other tenants");
        }
        let grouped = self.run_group(&(0..count).collect::<Vec<_>>())?;
        self.launch(Way::SideBySide)?;
        self.wait(Way::SideBySide)?;
        for all in [&self.partitions, self.side_by_side.executables(), &self.apart] {
            for (tenant, executable) in all.iter().enumerate() {
                if !std::ptr::eq(all.as_ptr(), self.side_by_side.executables().as_ptr()) {
                    executable.launch()?;
                }
                let outputs = executable.read_outputs()?;
                for (expected, actual) in outputs.iter().zip(&grouped[tenant]) {
                    let error = difference(expected, actual)?;
                    ensure!(error <= TOLERANCE, "tenant {tenant}: a group is off by {error:.1e}");
                }
            }
        }
        Ok(())
    }

    fn launch(&self, way: Way) -> Result<()> {
        match way {
            Way::Apart => self.apart.iter().try_for_each(CudaExecutable::launch)?,
            Way::Partitions => self.partitions.iter().try_for_each(CudaExecutable::launch)?,
            Way::SideBySide => self.side_by_side.launch()?,
            Way::Group => self.group.launch_again(self.members.len())?,
        }
        Ok(())
    }

    fn wait(&self, way: Way) -> Result<()> {
        match way {
            Way::Apart => self.apart.iter().try_for_each(CudaExecutable::wait)?,
            Way::Partitions => self.partitions.iter().try_for_each(CudaExecutable::wait)?,
            Way::SideBySide => self.side_by_side.wait()?,
            Way::Group => self.group.wait(self.members.len())?,
        }
        Ok(())
    }

    /// What one request of each tenant takes in each way, round after round, in milliseconds.
    fn times(&self, rounds: usize) -> Result<Vec<[f64; 4]>> {
        let ways = [Way::Apart, Way::Partitions, Way::SideBySide, Way::Group];
        let round = |_| -> Result<[f64; 4]> {
            let mut times = [0.0; 4];
            for way in ways {
                times[way as usize] = self.time_ms(way)?;
            }
            Ok(times)
        };
        (0..rounds).map(round).collect()
    }

    /// The time from one start to the next, with each waited for.
    fn time_ms(&self, way: Way) -> Result<f64> {
        self.launch(way)?;
        self.wait(way)?;
        let start = Instant::now();
        let mut count = 0;
        while count == 0 || start.elapsed() < TURN {
            self.launch(way)?;
            self.wait(way)?;
            count += 1;
        }
        Ok(start.elapsed().as_secs_f64() * 1e3 / f64::from(count))
    }
}

/// Partitions of a unit's size; what is left over of the SMs cannot run every kernel.
fn parts(device: &CudaDevice, units: &UnitSet) -> Result<Vec<Arc<CudaPartition>>> {
    let size = CudaOptions::default().sms_per_unit;
    let sets = device.layout().disjoint_sets(size).into_iter();
    let inside = sets.filter(|set| set.iter().all(|unit| units.as_slice().contains(&unit)));
    let parts = inside.map(|set| Ok(device.cuda_partition(&set)?)).collect::<Result<Vec<_>>>()?;
    ensure!(!parts.is_empty(), "a partition each takes at least {size} SMs");
    Ok(parts)
}
