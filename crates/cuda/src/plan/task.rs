//! What a plan has to compute: the graph's nodes, alone or in chains, each with the kernel chosen for it or the host.

use std::collections::HashMap;
use std::sync::Arc;

use weft_device::DeviceError;
use weft_ir::operators::layout::is_view;
use weft_ir::{Fact, InputFacts, Node, Operator, OptimizedGraph, ValueId};

use super::chooser::{Extent, Problem};
use super::site::{Selected, Selection, Site};
use super::target::Target;
use crate::launch::Candidate;

/// One or more nodes that are computed together.
pub(super) struct Task {
    /// The node's name; that of the last one in a chain.
    pub(super) node: String,
    pub(super) operator: String,
    pub(super) flops: u64,
    pub(super) inputs: Vec<Option<ValueId>>,
    pub(super) outputs: Vec<Option<ValueId>>,
    pub(super) work: Work,
}

/// What computes a task.
pub(super) enum Work {
    /// Kernels, which read these of the task's inputs.
    Device { candidate: Candidate, reads: Vec<usize> },
    /// The operator's own evaluation.
    Host(Arc<dyn Operator>),
}

/// The side of the bus that something happens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Side {
    Device,
    Host,
}

impl Task {
    pub(super) fn side(&self) -> Side {
        match self.work {
            Work::Device { .. } => Side::Device,
            Work::Host(_) => Side::Host,
        }
    }

    /// The values that the task needs on its side.
    pub(super) fn reads(&self) -> Vec<ValueId> {
        match &self.work {
            Work::Device { reads, .. } => reads
                .iter()
                .filter_map(|&index| self.inputs.get(index).copied().flatten())
                .collect(),
            Work::Host(_) => self.inputs.iter().copied().flatten().collect(),
        }
    }
}

/// Values that are the elements of another value under another shape: they have no memory of their own.
#[derive(Default)]
pub(super) struct Views(HashMap<ValueId, ValueId>);

impl Views {
    /// The value whose memory this one is.
    pub(super) fn root(&self, id: ValueId) -> ValueId {
        self.0.get(&id).copied().unwrap_or(id)
    }
}

/// The graph as tasks, in an order in which they can run.
pub(super) struct Tasks {
    pub(super) tasks: Vec<Task>,
    pub(super) views: Views,
}

/// What answers which kernels compute a node.
pub(super) type Selector<'a> = dyn Fn(&Site<'_>) -> Selection + 'a;

/// Turns every node into a task, or into a view where it only changes a shape.
pub(super) fn tasks(
    graph: &OptimizedGraph,
    target: &Target<'_>,
    selector: &Selector<'_>,
) -> Result<Tasks, DeviceError> {
    let mut views = Views::default();
    let mut tasks = Vec::new();
    for node in graph.graph().nodes() {
        if let Some((input, output)) = view_of(node, graph, target) {
            let root = views.root(input);
            views.0.insert(output, root);
            continue;
        }
        tasks.push(task(node, graph, target, selector)?);
    }
    Ok(Tasks { tasks, views })
}

fn task(
    node: &Node,
    graph: &OptimizedGraph,
    target: &Target<'_>,
    selector: &Selector<'_>,
) -> Result<Task, DeviceError> {
    let site = Site {
        node,
        graph,
        weights: target.weights,
        chip: target.chip,
        precision: target.precision,
    };
    let in_node = |error| target.in_node(&node.name, error);
    let device_work = match selector(&site).map_err(in_node)? {
        Some(selected) => {
            device_work(selected, &node.inputs, &node.outputs, graph, target).map_err(in_node)?
        }
        None => None,
    };
    Ok(Task {
        node: node.name.clone(),
        operator: node.operator.name().to_string(),
        flops: flops(node, graph),
        inputs: node.inputs.clone(),
        outputs: node.outputs.clone(),
        work: device_work.unwrap_or_else(|| Work::Host(node.operator.clone())),
    })
}

/// The candidate to use; `None` where a value that it reads or writes cannot lie on the device.
fn device_work(
    Selected { mut candidates, reads }: Selected,
    inputs: &[Option<ValueId>],
    outputs: &[Option<ValueId>],
    graph: &OptimizedGraph,
    target: &Target<'_>,
) -> Result<Option<Work>, DeviceError> {
    let extent = |id: ValueId| {
        let value = target.device_value(graph, id)?;
        Some(Extent { storage: value.storage, size_bytes: value.size_bytes() })
    };
    let read = |(index, id): (usize, &Option<ValueId>)| id.filter(|_| reads.contains(&index));
    let read: Vec<Option<ValueId>> = inputs.iter().enumerate().map(read).collect();
    let is_resident =
        |ids: &[Option<ValueId>]| ids.iter().flatten().all(|&id| extent(id).is_some());
    if !is_resident(&read) || !is_resident(outputs) {
        return Ok(None);
    }
    let extents = |ids: &[Option<ValueId>]| ids.iter().map(|id| id.and_then(extent)).collect();
    let problem =
        Problem { candidates: &candidates, inputs: extents(&read), outputs: extents(outputs) };
    let chosen = target.chooser.choose(&problem)?;
    Ok(Some(Work::Device { candidate: candidates.swap_remove(chosen), reads }))
}

fn flops(node: &Node, graph: &OptimizedGraph) -> u64 {
    let inputs: Vec<Option<&Fact>> =
        node.inputs.iter().map(|id| id.map(|id| graph.fact(id))).collect();
    let outputs: Vec<Fact> =
        node.outputs.iter().flatten().map(|&id| graph.fact(id).clone()).collect();
    node.operator.flops(&InputFacts::new(&inputs, node.outputs.len()), &outputs)
}

/// The input and output of a node that only changes the shape of a value that can lie on the device.
fn view_of(node: &Node, graph: &OptimizedGraph, target: &Target<'_>) -> Option<(ValueId, ValueId)> {
    let (input, output) = (node.input(0)?, node.output()?);
    let is_plain = is_view(&*node.operator)
        && target.device_value(graph, input).is_some()
        && target.device_value(graph, output).is_some();
    is_plain.then_some((input, output))
}
