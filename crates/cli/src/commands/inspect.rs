//! `weft inspect`: what a model is, and what Weft makes of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;
use weft_cpu::CpuDevice;
use weft_device::{Device, ExecutionReport, UnitSet};
use weft_ir::{Graph, ValueId};

use crate::model_file::{self, DimensionOptions};
use crate::table::{Table, bytes, count};

#[derive(Args)]
pub(crate) struct Options {
    /// The model: an ONNX file, or zoo:NAME
    model: String,
    /// Batch size to show it at
    #[arg(long, default_value_t = 1)]
    batch: usize,
    #[command(flatten)]
    dimensions: DimensionOptions,
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
    let device = CpuDevice::new()?;
    let model = device.load(&model_file::name(&path), &graph)?;
    let partition = device.partition(&device.units().iter().take(1).collect::<UnitSet>())?;
    let executable = partition.prepare(&*model, &shapes)?;
    let summary = Summary { graph: &graph, shapes: &shapes, report: executable.report() };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&summary.json(options))?);
    } else {
        summary.print(options);
    }
    Ok(())
}

struct Summary<'a> {
    graph: &'a Graph,
    shapes: &'a [Vec<usize>],
    report: &'a ExecutionReport,
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

    fn print(&self, options: &Options) {
        let (parameters, weight_bytes) = self.parameters();
        println!(
            "{}  opset {}, {} nodes",
            options.model,
            self.graph.opset,
            self.graph.nodes().len()
        );
        for (id, shape) in self.graph.required_inputs().zip(self.shapes) {
            println!(
                "  input    {}: {}, here {shape:?}",
                self.graph.value(id).name,
                self.declared(id)
            );
        }
        for &id in self.graph.outputs() {
            println!("  output   {}: {}", self.graph.value(id).name, self.declared(id));
        }
        println!("  weights  {} parameters, {}", count(parameters as u64), bytes(weight_bytes));
        println!("  work     {} FLOP at batch {}", count(self.report.flops), options.batch);
        println!(
            "  memory   {} packed weights, {} arena for activations",
            bytes(self.report.weight_bytes),
            bytes(self.report.arena_bytes)
        );
        let operators: Vec<String> =
            self.operators().iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!("\noperators: {}", operators.join(", "));
        let rewrites: Vec<String> = self
            .report
            .rewrites
            .iter()
            .map(|entry| format!("{} {}", entry.rewrite, entry.times))
            .collect();
        println!(
            "rewrites:  {}",
            if rewrites.is_empty() { "none".into() } else { rewrites.join(", ") }
        );
        println!();
        let mut table = Table::new(["kernel", "steps", "FLOP"]);
        for (kernel, (steps, flops)) in self.kernels() {
            table.row([kernel.into(), steps.to_string(), count(flops)]);
        }
        println!("{}", table.render());
        if options.steps {
            println!();
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
            println!("{}", table.render());
        }
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
