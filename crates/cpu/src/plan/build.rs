//! From an optimised graph to an execution plan: kernels are selected, weights packed, buffers placed.

use std::collections::HashMap;
use std::ops::Range;

use weft_device::{ExecutionReport, KernelChoices, StepReport};
use weft_ir::buffers::{Lifetime, plan_buffers};
use weft_ir::operators::layout::is_view;
use weft_ir::{Fact, InputFacts, Node, OptimizedGraph, Tensor, ValueId};

use super::chunks::{Chunking, segments};
use super::copy_step::CopyStep;
use super::kernel::Kernel;
use super::reference_step::ReferenceStep;
use super::segment_uses::SegmentUses;
use super::select::select;
use super::site::{Selected, Site};
use super::slot::{Operand, Slot, is_dense};
use super::{ExecutionPlan, PlacedValue, Step};
use crate::Isa;
use crate::weights::WeightStore;

/// A step whose operands have no place yet.
pub(super) struct Draft {
    kernel: Box<dyn Kernel>,
    /// It was made for one chunk of the batch.
    is_cut: bool,
    pub(super) inputs: Vec<Option<ValueId>>,
    pub(super) outputs: Vec<Option<ValueId>>,
}

/// What a plan is built with.
#[derive(Clone, Copy)]
pub(crate) struct Planning<'a> {
    pub(crate) weights: &'a WeightStore,
    pub(crate) isa: Isa,
    pub(crate) workers: usize,
    /// Which kernels were found to be fastest, where any were tried.
    pub(crate) choices: Option<&'a dyn KernelChoices>,
}

/// Builds the plan. Constants that kernels have packed are released as soon as they are.
pub(crate) fn build(graph: OptimizedGraph, planning: &Planning<'_>) -> ExecutionPlan {
    build_as(graph, None, planning)
}

/// The plan for [a part of a batch](super::is_part), with the steps of the plan for the whole batch and, where a part has at least
/// two entries, its bits.
pub(crate) fn build_part(
    part: OptimizedGraph,
    whole: &OptimizedGraph,
    planning: &Planning<'_>,
) -> ExecutionPlan {
    build_as(part, Some(whole), planning)
}

/// Kernels are chosen as for the whole batch, where the graph is for a part of that.
fn build_as(
    mut graph: OptimizedGraph,
    whole: Option<&OptimizedGraph>,
    &Planning { weights, isa, workers, choices }: &Planning<'_>,
) -> ExecutionPlan {
    let mut report = ExecutionReport { rewrites: graph.applied().to_vec(), ..Default::default() };
    let mut drafts = Vec::new();
    let mut views: HashMap<ValueId, ValueId> = HashMap::new();
    let mut readers_left = reader_counts(&graph);
    let mut chunking = Chunking::of(&graph);
    let cut = match whole {
        Some(whole) => cut_nodes(whole, Chunking::of(whole).as_ref()),
        None => cut_nodes(&graph, chunking.as_ref()),
    };
    for (node_index, node) in graph.graph().nodes().to_vec().into_iter().enumerate() {
        let flops = flops(&node, &graph);
        report.flops += flops;
        if let Some((input, output)) = view_of(&node, &graph) {
            let source = views.get(&input).copied().unwrap_or(input);
            views.insert(output, source);
            continue;
        }
        settle(&node, &graph);
        let facts = graph.facts();
        let deciding = whole.map_or(facts, OptimizedGraph::facts);
        let site =
            Site { node: &node, graph: &graph, facts, deciding, weights, isa, workers, choices };
        let for_chunk = chunking.as_ref().filter(|_| cut[node_index]).and_then(|chunking| {
            select(&Site { facts: &chunking.facts, deciding: &chunking.facts, ..site })
        });
        let is_cut = for_chunk.is_some();
        let Selected { kernel, reads } =
            for_chunk.or_else(|| select(&site)).unwrap_or_else(|| Selected {
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
            if *left == 0
                && let Some(tensor) = graph.graph().constant(*id)
            {
                let_go(tensor);
                graph.release_constant(*id);
                if let Some(chunking) = &mut chunking {
                    chunking.facts.release_constant(*id);
                }
            }
        }
        let inputs = reads.iter().map(|&index| node.input(index)).collect();
        drafts.push(Draft { kernel, is_cut, inputs, outputs: node.outputs.clone() });
    }
    place(&graph, drafts, &views, chunking.as_ref(), report)
}

/// Lets go of the part of the model file that a weight was read from.
pub(crate) fn let_go(tensor: &Tensor) {
    if let Some(bytes) = tensor.source_bytes() {
        weft_mapped_file::let_go(bytes);
    }
}

/// Copies weights that have to be copied before they are packed, so that file and copy are not held while packing.
fn settle(node: &Node, graph: &OptimizedGraph) {
    let constants = node.inputs.iter().flatten().filter_map(|&id| graph.graph().constant(id));
    for tensor in constants.filter(|tensor| tensor.is_copied_when_read()) {
        if tensor.elements::<f32>().is_ok() {
            let_go(tensor);
        }
    }
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
pub(super) fn view_of(node: &Node, graph: &OptimizedGraph) -> Option<(ValueId, ValueId)> {
    let (input, output) = (node.input(0)?, node.output()?);
    let is_plain = is_view(&*node.operator)
        && is_dense(graph.fact(input))
        && is_dense(graph.fact(output))
        && !graph.graph().outputs().contains(&output);
    is_plain.then_some((input, output))
}

/// Which nodes run chunk by chunk: those of runs of at least two that can be cut, views between them not counted.
pub(super) fn cut_nodes(graph: &OptimizedGraph, chunking: Option<&Chunking>) -> Vec<bool> {
    let nodes = graph.graph().nodes();
    let mut cut = vec![false; nodes.len()];
    let Some(chunking) = chunking else { return cut };
    let steps: Vec<usize> =
        (0..nodes.len()).filter(|&index| view_of(&nodes[index], graph).is_none()).collect();
    let can_be_cut: Vec<bool> =
        steps.iter().map(|&index| chunking.cuts(&nodes[index], graph)).collect();
    for segment in segments(&can_be_cut) {
        steps[segment].iter().for_each(|&index| cut[index] = true);
    }
    cut
}

/// The drafts in groups that run together, with the number of chunks.
fn group(drafts: &[Draft], chunk_count: usize) -> Vec<(Range<usize>, usize)> {
    let is_cut: Vec<bool> = drafts.iter().map(|draft| draft.is_cut).collect();
    let mut groups = Vec::new();
    let mut done = 0;
    for end in 1..=is_cut.len() {
        if end == is_cut.len() || is_cut[end] != is_cut[done] {
            groups.push((done..end, if is_cut[done] { chunk_count } else { 1 }));
            done = end;
        }
    }
    groups
}

/// Gives every value its place and every draft its operands.
fn place(
    graph: &OptimizedGraph,
    drafts: Vec<Draft>,
    views: &HashMap<ValueId, ValueId>,
    chunking: Option<&Chunking>,
    mut report: ExecutionReport,
) -> ExecutionPlan {
    let root = |id: ValueId| views.get(&id).copied().unwrap_or(id);
    let mut segments = group(&drafts, chunking.map_or(1, |chunking| chunking.count));
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

    let uses = SegmentUses::new(&drafts, &segments, root);
    let mut heap_slots = 0;
    let mut arena: Vec<ValueId> = Vec::new();
    let mut lifetimes: Vec<Lifetime> = Vec::new();
    for id in drafts.iter().flat_map(|draft| draft.outputs.iter().flatten().copied()) {
        if slots.contains_key(&id) {
            continue;
        }
        if !is_dense(graph.fact(id)) {
            slots.insert(id, Slot::Heap(heap_slots));
            heap_slots += 1;
            continue;
        }
        let facts = match chunking {
            Some(chunking) if uses.is_local(id) => &chunking.facts,
            _ => graph.facts(),
        };
        arena.push(id);
        lifetimes.push(uses.lifetime(id, facts.of(id).size_bytes().unwrap_or(0)));
    }
    let buffers = plan_buffers(&lifetimes);
    for (id, &offset_bytes) in arena.iter().zip(&buffers.offsets_bytes) {
        slots.insert(*id, Slot::Arena { offset_bytes });
    }
    report.arena_bytes = buffers.arena_bytes;

    let operand = |id: ValueId, is_cut: bool| {
        let slot = match graph.graph().constant(id) {
            Some(tensor) => Slot::Constant(tensor.clone()),
            None => {
                slots.get(&root(id)).cloned().expect("every value that is read was given a place")
            }
        };
        let cut = chunking.filter(|_| is_cut && !matches!(slot, Slot::Constant(_)));
        let fact = Fact {
            constant: None,
            ..cut.map_or(graph.fact(id), |chunking| chunking.facts.of(id)).clone()
        };
        let is_whole = cut.is_none() || uses.is_local(root(id));
        let chunk_stride = if is_whole { 0 } else { fact.element_count().unwrap_or(0) };
        Operand { slot, fact, chunk_stride }
    };
    let made = drafts.iter().flat_map(|draft| draft.outputs.iter().flatten().copied());
    let values = made
        .filter(|id| !uses.is_local(*id) && !matches!(slots.get(id), Some(Slot::Output(_))))
        .filter_map(|id| Some(PlacedValue { operand: operand(id, false), needed: uses.span(id)? }))
        .collect();
    let mut steps: Vec<Step> = drafts
        .into_iter()
        .map(|draft| Step {
            kernel: draft.kernel,
            inputs: draft
                .inputs
                .into_iter()
                .map(|id| id.map(|id| operand(id, draft.is_cut)))
                .collect(),
            outputs: draft
                .outputs
                .into_iter()
                .map(|id| id.map(|id| operand(id, draft.is_cut)))
                .collect(),
        })
        .collect();
    let mut outputs: Vec<Operand> =
        graph.graph().outputs().iter().map(|&id| operand(id, false)).collect();
    for (id, index) in copies {
        let output = Operand { slot: Slot::Output(index), ..operand(id, false) };
        outputs[index] = output.clone();
        let kernel = Box::new(CopyStep);
        report.steps.push(StepReport {
            node: graph.graph().value(id).name.clone(),
            operator: "Copy".into(),
            kernel: kernel.name(),
            flops: 0,
        });
        segments.push((steps.len()..steps.len() + 1, 1));
        steps.push(Step {
            kernel,
            inputs: vec![Some(operand(id, false))],
            outputs: vec![Some(output)],
        });
    }
    let inputs = inputs
        .iter()
        .map(|&id| (graph.graph().value(id).name.clone(), graph.fact(id).clone()))
        .collect();
    ExecutionPlan { steps, segments, inputs, outputs, values, heap_slots, report }
}
