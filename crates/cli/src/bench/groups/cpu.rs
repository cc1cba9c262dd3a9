//! Tenants on a CPU: one after another, and as a group.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value as Json, json};
use weft_cpu::CpuDevice;
use weft_device::{
    Device, Executable, Group, GroupEntry, GroupMember, LoadedModel, NewGroup, Partition,
};
use weft_ir::{Graph, Value};

use super::{Options, graph};
use crate::bench::statistics::{geometric_mean, median};
use crate::bench::timing::first_units;
use crate::model_file;
use crate::progress;
use crate::table::Table;
use crate::terminal;

/// The models where none is named.
const MODELS: [&str; 4] =
    ["zoo:mobilenet_v2", "zoo:squeezenet1_1", "zoo:shufflenet_v2_x1_0", "zoo:minilm_l6"];

/// For how long each runs in a round, at least once.
const TURN: Duration = Duration::from_millis(100);

pub(super) fn run(options: &Options) -> Result<()> {
    let device = CpuDevice::new()?;
    let units = first_units(&device, options.cores.unwrap_or(device.units().len()))?;
    let partition = device.partition(&units)?;
    let cores = units.len();
    let mut table = Table::new([
        "model",
        "tenants",
        "one after another, ms",
        "as a group, ms",
        "gain",
        "least",
    ]);
    let (mut values, mut gains): (Vec<Json>, Vec<f64>) = (Vec::new(), Vec::new());
    for name in &options.models(&MODELS)? {
        for count in options.tenants(8) {
            progress::show(format!("{name}, {count} tenants"));
            let tenants = Tenants::new(options, &device, &*partition, name, count)?;
            tenants.check()?;
            let (mut apart, mut grouped) = (Vec::new(), Vec::new());
            for _ in 0..options.rounds {
                apart.push(time_ms(|| tenants.run_apart())?);
                grouped.push(time_ms(|| tenants.run_grouped())?);
            }
            let ratios: Vec<f64> =
                apart.iter().zip(&grouped).map(|(apart, grouped)| apart / grouped).collect();
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            table.row([
                name.clone(),
                count.to_string(),
                format!("{:.3}", median(&apart)),
                format!("{:.3}", median(&grouped)),
                format!("{:.3}", median(&ratios)),
                format!("{least:.3}"),
            ]);
            gains.push(median(&ratios));
            values.push(json!({
                "model": name, "tenants": count, "cores": cores, "apart_ms": median(&apart),
                "group_ms": median(&grouped), "gain": median(&ratios), "least_gain": least,
            }));
        }
    }
    progress::clear();
    let text = match options.json {
        true => serde_json::to_string_pretty(&values)?,
        false => format!(
            "on {cores} cores:\n{}\ngeometric mean of the gains {:.3}",
            table.render(),
            geometric_mean(&gains)
        ),
    };
    Ok(terminal::print(&text)?)
}

/// Tenants of one model's structure, each with a request of its own.
struct Tenants {
    apart: Vec<Box<dyn Executable>>,
    group: Box<dyn Group>,
    members: Vec<GroupMember>,
    inputs: Vec<Vec<Value>>,
    _models: Vec<Arc<dyn LoadedModel>>,
}

impl Tenants {
    fn new(
        options: &Options,
        device: &CpuDevice,
        partition: &dyn Partition,
        name: &str,
        count: usize,
    ) -> Result<Self> {
        let graphs = (0..count as u64).map(|seed| graph(name, seed));
        let graphs = graphs.collect::<Result<Vec<Graph>>>()?;
        let shapes = options.dimensions.shapes_among(&graphs[0], 1)?;
        let load =
            |(tenant, graph): (usize, &Graph)| device.load(&format!("{name} {tenant}"), graph);
        let models = graphs.iter().enumerate().map(load).collect::<Result<Vec<_>, _>>()?;
        let prepared = models.iter().map(|model| partition.prepare(&**model, &shapes));
        let apart = prepared.collect::<Result<Vec<_>, _>>()?;
        let group = partition.prepare_group(&*models[0], &shapes, count);
        let NewGroup { group, first } = group.context("the device has no groups")??;
        let mut members = vec![first];
        for model in &models[1..] {
            members.push(group.join(&**model)?);
        }
        let inputs = (0..count as u64).map(|seed| {
            let inputs = model_file::random_inputs(&graphs[0], &shapes, seed)?;
            Ok(inputs.into_iter().map(Value::Tensor).collect())
        });
        Ok(Self { apart, group, members, inputs: inputs.collect::<Result<_>>()?, _models: models })
    }

    fn run_apart(&self) -> Result<Vec<Vec<Value>>> {
        let all = self.apart.iter().zip(&self.inputs);
        all.map(|(executable, inputs)| Ok(executable.run(inputs)?)).collect()
    }

    fn run_grouped(&self) -> Result<Vec<Vec<Value>>> {
        let both = self.members.iter().zip(&self.inputs);
        let entries: Vec<GroupEntry<'_>> =
            both.map(|(&member, inputs)| GroupEntry { member, inputs }).collect();
        self.group.run(&entries).into_iter().map(|answer| Ok(answer?)).collect()
    }

    /// Whether a group has what each of its requests has in it alone, to the bit.
    fn check(&self) -> Result<()> {
        let together = self.run_grouped()?;
        for (tenant, (&member, inputs)) in self.members.iter().zip(&self.inputs).enumerate() {
            let alone = self.group.run(&[GroupEntry { member, inputs }]);
            let alone = alone.into_iter().next().context("no answer")??;
            ensure!(alone == together[tenant], "tenant {tenant} has other results in a group");
        }
        Ok(())
    }
}

/// The time of one run, in the mean of as many as fit into a turn.
fn time_ms(run: impl Fn() -> Result<Vec<Vec<Value>>>) -> Result<f64> {
    let start = Instant::now();
    let mut count = 0;
    while count == 0 || start.elapsed() < TURN {
        run()?;
        count += 1;
    }
    Ok(start.elapsed().as_secs_f64() * 1e3 / f64::from(count))
}
