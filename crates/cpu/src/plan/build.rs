//! From an optimised graph to an execution plan: kernels are selected, weights packed, buffers placed.

use std::collections::HashMap;

use weft_device::{ExecutionReport, StepReport};
use weft_ir::buffers::{Lifetime, plan_buffers};
use weft_ir::operators::layout::is_view;
use weft_ir::{Fact, InputFacts, Node, OptimizedGraph, ValueId};

use super::copy_step::CopyStep;
use super::kernel::Kernel;
use super::reference_step::ReferenceStep;
use super::select::select;
use super::site::{Selected, Site};
use super::slot::{Operand, Slot, is_dense};
use super::{ExecutionPlan, Step};
use crate::Isa;
use crate::weights::WeightStore;

/// A step whose operands have no place yet.
struct Draft {
    kernel: Box<dyn Kernel>,
    inputs: Vec<Option<ValueId>>,
    outputs: Vec<Option<ValueId>>,
}

/// Builds the plan. Constants that kernels have packed are released as soon as they are.
pub(crate) fn build(
    mut graph: OptimizedGraph,
    weights: &WeightStore,
    isa: Isa,
    workers: usize,
) -> ExecutionPlan {
    let mut report = ExecutionReport { rewrites: graph.applied().to_vec(), ..Default::default() };
    let mut drafts = Vec::new();
    let mut views: HashMap<ValueId, ValueId> = HashMap::new();
    let mut readers_left = reader_counts(&graph);
    for node in graph.graph().nodes().to_vec() {
        let flops = flops(&node, &graph);
        report.flops += flops;
        if let Some((input, output)) = view_of(&node, &graph) {
            let source = views.get(&input).copied().unwrap_or(input);
            views.insert(output, source);
            continue;
        }
        let site = Site { node: &node, graph: &graph, weights, isa, workers };
        let Selected { kernel, reads } = select(&site).unwrap_or_else(|| Selected {
            kernel: Box::new(ReferenceStep::new(&node)),
            reads: (0..node.inputs.len()).collect(),
        });
        report.weight_bytes += kernel.weight_bytes();
        report.steps.push(StepReport {
            node: node.name.clone(),
            operator: node.operator.name().to_string(),
            kernel: kernel.name(),
            flops,
        });
        for (index, id) in node.inputs.iter().enumerate() {
            let Some(id) = id else { continue };
            let left = &mut readers_left[id.index()];
            *left -= usize::from(!reads.contains(&index));
            if *left == 0 && graph.graph().constant(*id).is_some() {
                graph.release_constant(*id);
            }
        }
        let inputs = reads.iter().map(|&index| node.input(index)).collect();
        drafts.push(Draft { kernel, inputs, outputs: node.outputs.clone() });
    }
    place(graph, drafts, views, report)
}

/// How many node inputs and graph outputs read each value.
fn reader_counts(graph: &OptimizedGraph) -> Vec<usize> {
    let mut counts = vec![0; graph.graph().values().len()];
    let read = graph.graph().nodes().iter().flat_map(|node| node.inputs.iter().flatten());
    read.chain(graph.graph().outputs()).for_each(|id| counts[id.index()] += 1);
    counts
}

fn flops(node: &Node, graph: &OptimizedGraph) -> u64 {
    let inputs: Vec<Option<&Fact>> =
        node.inputs.iter().map(|id| id.map(|id| graph.fact(id))).collect();
    let outputs: Vec<Fact> =
        node.outputs.iter().flatten().map(|&id| graph.fact(id).clone()).collect();
    node.operator.flops(&InputFacts::new(&inputs, node.outputs.len()), &outputs)
}

/// The input and output of a node that only changes the shape of a dense value; it needs no step,
/// unless its output is given back to the caller.
fn view_of(node: &Node, graph: &OptimizedGraph) -> Option<(ValueId, ValueId)> {
    let (input, output) = (node.input(0)?, node.output()?);
    let is_plain = is_view(&*node.operator)
        && is_dense(graph.fact(input))
        && is_dense(graph.fact(output))
        && !graph.graph().outputs().contains(&output);
    is_plain.then_some((input, output))
}

/// Gives every value its place and every draft its operands.
fn place(
    graph: OptimizedGraph,
    drafts: Vec<Draft>,
    views: HashMap<ValueId, ValueId>,
    mut report: ExecutionReport,
) -> ExecutionPlan {
    let root = |id: ValueId| views.get(&id).copied().unwrap_or(id);
    let mut slots: HashMap<ValueId, Slot> = HashMap::new();
    let inputs: Vec<ValueId> = graph.graph().required_inputs().collect();
    for (index, &id) in inputs.iter().enumerate() {
        slots.insert(id, Slot::Input(index));
    }
    let mut copies = Vec::new();
    for (index, &id) in graph.graph().outputs().iter().enumerate() {
        if !is_dense(graph.fact(id)) {
            continue;
        }
        // Inputs, constants and values that are given back twice have a place already, so they are copied.
        if slots.contains_key(&id) || graph.graph().constant(id).is_some() {
            copies.push((id, index));
        } else {
            slots.insert(id, Slot::Output(index));
        }
    }

    let mut heap_slots = 0;
    let mut arena: Vec<ValueId> = Vec::new();
    let mut lifetimes: Vec<Lifetime> = Vec::new();
    let mut places: HashMap<ValueId, usize> = HashMap::new();
    for (step, draft) in drafts.iter().enumerate() {
        for &id in draft.outputs.iter().flatten() {
            if slots.contains_key(&id) {
                continue;
            }
            let fact = graph.fact(id);
            if is_dense(fact) {
                places.insert(id, arena.len());
                arena.push(id);
                let size_bytes = fact.size_bytes().unwrap_or(0);
                lifetimes.push(Lifetime { size_bytes, first_step: step, last_step: step });
            } else {
                slots.insert(id, Slot::Heap(heap_slots));
                heap_slots += 1;
            }
        }
        for &id in draft.inputs.iter().flatten() {
            if let Some(&place) = places.get(&root(id)) {
                lifetimes[place].last_step = step;
            }
        }
    }
    for (id, _) in &copies {
        if let Some(&place) = places.get(&root(*id)) {
            lifetimes[place].last_step = drafts.len();
        }
    }
    let buffers = plan_buffers(&lifetimes);
    for (id, &offset_bytes) in arena.iter().zip(&buffers.offsets_bytes) {
        slots.insert(*id, Slot::Arena { offset_bytes });
    }
    report.arena_bytes = buffers.arena_bytes;

    let operand = |id: ValueId| {
        let fact = Fact { constant: None, ..graph.fact(id).clone() };
        let slot = match graph.graph().constant(id) {
            Some(tensor) => Slot::Constant(tensor.clone()),
            None => {
                slots.get(&root(id)).cloned().expect("every value that is read was given a place")
            }
        };
        Operand { slot, fact }
    };
    let mut steps: Vec<Step> = drafts
        .into_iter()
        .map(|draft| Step {
            kernel: draft.kernel,
            inputs: draft.inputs.into_iter().map(|id| id.map(operand)).collect(),
            outputs: draft.outputs.into_iter().map(|id| id.map(operand)).collect(),
        })
        .collect();
    let mut outputs: Vec<Operand> = graph.graph().outputs().iter().map(|&id| operand(id)).collect();
    for (id, index) in copies {
        let output = Operand { slot: Slot::Output(index), ..operand(id) };
        outputs[index] = output.clone();
        let kernel = Box::new(CopyStep);
        report.steps.push(StepReport {
            node: graph.graph().value(id).name.clone(),
            operator: "Copy".into(),
            kernel: kernel.name(),
            flops: 0,
        });
        steps.push(Step { kernel, inputs: vec![Some(operand(id))], outputs: vec![Some(output)] });
    }
    let inputs = inputs
        .iter()
        .map(|&id| (graph.graph().value(id).name.clone(), graph.fact(id).clone()))
        .collect();
    ExecutionPlan { steps, inputs, outputs, heap_slots, report }
}
