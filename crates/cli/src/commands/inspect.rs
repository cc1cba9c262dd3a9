//! `weft inspect`: what a model is, and what Weft makes of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use weft_cuda::{Chip, preview};
use weft_device::{DeviceError, ExecutionReport};
use weft_ir::{Graph, ValueId};

use crate::device::{DeviceName, DeviceOptions};
use crate::model_file::{self, DimensionOptions};
use crate::table::{Table, bytes, count};
use crate::terminal;

#[derive(Args)]
pub(crate) struct Options {
    /// The model: an ONNX file, or zoo:NAME
    model: String,
    /// Batch size to show it at
    #[arg(long, default_value_t = 1)]
    batch: usize,
    #[command(flatten)]
    dimensions: DimensionOptions,
    #[command(flatten)]
    device: DeviceOptions,
    /// SMs of a GPU to plan for, at least [default: all]
    #[arg(long, value_name = "COUNT")]
    sms: Option<usize>,
    /// List every step with its kernel
    #[arg(long)]
    steps: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let path: PathBuf = model_file::resolve(&options.model)?;
    let graph = model_file::load(&path)?;
    let shapes = options.dimensions.shapes(&graph, options.batch)?;
    let planned = plan(options, &model_file::name(&path), &graph, &shapes)?;
    let summary =
        Summary { graph: &graph, shapes: &shapes, report: &planned.report, place: &planned.place };
    if options.json {
        terminal::print(&serde_json::to_string_pretty(&summary.json(options))?)?;
    } else {
        summary.print(options)?;
    }
    Ok(())
}

/// What a device makes of the model.
struct Planned {
    report: ExecutionReport,
    /// Where it would run, in words.
    place: String,
}

fn plan(options: &Options, name: &str, graph: &Graph, shapes: &[Vec<usize>]) -> Result<Planned> {
    let device = match options.device.open() {
        Ok(device) => device,
        Err(error) => match (options.device.device, error.downcast::<DeviceError>()) {
            (DeviceName::Cuda(_), Ok(DeviceError::Unavailable { why, .. })) => {
                return plan_without_gpu(options, name, graph, shapes, &why);
            }
            (_, Ok(error)) => return Err(error.into()),
            (_, Err(error)) => return Err(error),
        },
    };
    let units = match options.device.device {
        DeviceName::Cpu if options.sms.is_none() => device.units_of_size(1)?,
        _ => device.chosen_units(None, options.sms)?,
    };
    let model = device.as_device().load(name, graph)?;
    let executable = device.as_device().partition(&units)?.prepare(&*model, shapes)?;
    Ok(Planned { report: executable.report().clone(), place: device.in_words(&units) })
}

/// The plan for the GPU that Weft knows best, as far as a plan needs no GPU.
fn plan_without_gpu(
    options: &Options,
    name: &str,
    graph: &Graph,
    shapes: &[Vec<usize>],
    why: &str,
) -> Result<Planned> {
    let all = Chip::H200.sm_count;
    let sms = options.sms.map_or(Some(all), |count| u32::try_from(count).ok());
    let sms = sms.filter(|sms| (1..=all).contains(sms));
    let sms = sms.with_context(|| format!("an H200 has 1 to {all} SMs"))?;
    let precision = options.device.precision.unwrap_or_default();
    let report = preview(name, graph, shapes, Chip::H200.with_sms(sms), precision)?;
    Ok(Planned { report, place: format!("{sms} SMs of an H200 that is not here ({why})") })
}

struct Summary<'a> {
    graph: &'a Graph,
    shapes: &'a [Vec<usize>],
    report: &'a ExecutionReport,
    place: &'a str,
}

impl Summary<'_> {
    fn parameters(&self) -> (usize, usize) {
        let constants = self.graph.values().iter().filter_map(|value| value.constant.as_ref());
        constants.fold((0, 0), |(count, bytes), tensor| {
            (count + tensor.len(), bytes + tensor.size_bytes())
        })
    }

    fn operators(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        self.graph
            .nodes()
            .iter()
            .for_each(|node| *counts.entry(node.operator.name()).or_insert(0) += 1);
        counts
    }

    fn kernels(&self) -> BTreeMap<&str, (usize, u64)> {
        let mut counts = BTreeMap::new();
        for step in &self.report.steps {
            let entry = counts.entry(step.kernel.as_str()).or_insert((0, 0));
            *entry = (entry.0 + 1, entry.1 + step.flops);
        }
        counts
    }

    fn declared(&self, id: ValueId) -> String {
        let info = self.graph.value(id);
        info.declared.as_ref().map_or_else(|| "?".into(), |declared| declared.to_string())
    }

    fn print(&self, options: &Options) -> Result<()> {
        let (parameters, weight_bytes) = self.parameters();
        terminal::print(&format!(
            "{}  opset {}, {} nodes",
            options.model,
            self.graph.opset,
            self.graph.nodes().len()
        ))?;
        for (id, shape) in self.graph.required_inputs().zip(self.shapes) {
            terminal::print(&format!(
                "  input    {}: {}, here {shape:?}",
                self.graph.value(id).name,
                self.declared(id)
            ))?;
        }
        for &id in self.graph.outputs() {
            terminal::print(&format!(
                "  output   {}: {}",
                self.graph.value(id).name,
                self.declared(id)
            ))?;
        }
        terminal::print(&format!("  planned  for {}", self.place))?;
        terminal::print(&format!(
            "  weights  {} parameters, {}",
            count(parameters as u64),
            bytes(weight_bytes)
        ))?;
        terminal::print(&format!(
            "  work     {} FLOP at batch {}",
            count(self.report.flops),
            options.batch
        ))?;
        terminal::print(&format!(
            "  memory   {} packed weights, {} arena for activations",
            bytes(self.report.weight_bytes),
            bytes(self.report.arena_bytes)
        ))?;
        let operators: Vec<String> =
            self.operators().iter().map(|(name, count)| format!("{name} {count}")).collect();
        terminal::print(&format!("\noperators: {}", operators.join(", ")))?;
        let rewrites: Vec<String> = self
            .report
            .rewrites
            .iter()
            .map(|entry| format!("{} {}", entry.rewrite, entry.times))
            .collect();
        terminal::print(&format!(
            "rewrites:  {}",
            if rewrites.is_empty() { "none".into() } else { rewrites.join(", ") }
        ))?;
        terminal::print("")?;
        let mut table = Table::new(["kernel", "steps", "FLOP"]);
        for (kernel, (steps, flops)) in self.kernels() {
            table.row([kernel.into(), steps.to_string(), count(flops)]);
        }
        terminal::print(&table.render())?;
        if options.steps {
            terminal::print("")?;
            let mut table = Table::new(["step", "operator", "kernel", "FLOP", "node"]);
            for (index, step) in self.report.steps.iter().enumerate() {
                let cells = [
                    index.to_string(),
                    step.operator.clone(),
                    step.kernel.clone(),
                    count(step.flops),
                    step.node.clone(),
                ];
                table.row(cells);
            }
            terminal::print(&table.render())?;
        }
        Ok(())
    }

    fn json(&self, options: &Options) -> serde_json::Value {
        let (parameters, weight_bytes) = self.parameters();
        let inputs: Vec<_> = self
            .graph
            .required_inputs()
            .zip(self.shapes)
            .map(|(id, shape)| json!({ "name": self.graph.value(id).name, "type": self.declared(id), "shape": shape }))
            .collect();
        let outputs: Vec<_> = self
            .graph
            .outputs()
            .iter()
            .map(|&id| json!({ "name": self.graph.value(id).name, "type": self.declared(id) }))
            .collect();
        let steps: Vec<_> = self
            .report
            .steps
            .iter()
            .map(|s| json!({ "node": s.node, "operator": s.operator, "kernel": s.kernel, "flops": s.flops }))
            .collect();
        let rewrites: BTreeMap<_, _> =
            self.report.rewrites.iter().map(|entry| (entry.rewrite, entry.times)).collect();
        json!({
            "model": options.model,
            "opset": self.graph.opset,
            "batch": options.batch,
            "planned_for": self.place,
            "inputs": inputs,
            "outputs": outputs,
            "operators": self.operators(),
            "parameters": parameters,
            "weight_bytes": weight_bytes,
            "packed_weight_bytes": self.report.weight_bytes,
            "arena_bytes": self.report.arena_bytes,
            "flops": self.report.flops,
            "rewrites": rewrites,
            "steps": steps,
        })
    }
}
