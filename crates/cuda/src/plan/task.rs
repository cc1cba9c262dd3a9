//! What a plan has to compute: the graph's nodes, each with the kernel chosen for it or the host.

use std::collections::HashMap;
use std::sync::Arc;

use weft_device::DeviceError;
use weft_ir::operators::layout::is_view;
use weft_ir::{Fact, InputFacts, Node, Operator, OptimizedGraph, ValueId};

use super::chooser::{Extent, Problem};
use super::site::{Selected, Selection, Site};
use super::target::Target;
use crate::launch::Candidate;

/// Something that is computed in one go.
pub(super) struct Task {
    /// The node's name.
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
            Work::Device { reads, .. } => read_inputs(&self.inputs, reads).flatten().collect(),
            Work::Host(_) => self.inputs.iter().copied().flatten().collect(),
        }
    }
}

/// The inputs with those left out that are not read.
fn read_inputs<'a>(
    inputs: &'a [Option<ValueId>],
    reads: &'a [usize],
) -> impl Iterator<Item = Option<ValueId>> + 'a {
    inputs.iter().enumerate().map(|(index, id)| id.filter(|_| reads.contains(&index)))
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
    let mut drafts = Vec::new();
    for node in graph.graph().nodes() {
        if let Some((input, output)) = view_of(node, graph, target) {
            let root = views.root(input);
            views.0.insert(output, root);
            continue;
        }
        let site = Site {
            node,
            graph,
            weights: target.weights,
            chip: target.chip,
            precision: target.precision,
        };
        let selected = selector(&site).map_err(|error| target.in_node(&node.name, error))?;
        let selected = selected.filter(|selected| is_resident(node, selected, graph, target));
        drafts.push(Draft { node, selected });
    }
    Ok(Tasks { tasks: choose(drafts, graph, target)?, views })
}

/// A node before it is decided how it is computed.
struct Draft<'a> {
    node: &'a Node,
    /// `None` where the host computes it.
    selected: Option<Selected>,
}

/// Decides among the candidates of all nodes at once.
fn choose(
    drafts: Vec<Draft<'_>>,
    graph: &OptimizedGraph,
    target: &Target<'_>,
) -> Result<Vec<Task>, DeviceError> {
    let extent = |id: ValueId| {
        let value = target.device_value(graph, id)?;
        Some(Extent { storage: value.storage, size_bytes: value.size_bytes() })
    };
    let mut problems = Vec::new();
    for Draft { node, selected } in &drafts {
        let Some(selected) = selected else { continue };
        let inputs = read_inputs(&node.inputs, &selected.reads);
        problems.push(Problem {
            candidates: &selected.candidates,
            inputs: inputs.map(|id| id.and_then(extent)).collect(),
            outputs: node.outputs.iter().map(|id| id.and_then(extent)).collect(),
        });
    }
    let mut choices = target.chooser.choose(&problems).into_iter();
    let mut tasks = Vec::with_capacity(drafts.len());
    for Draft { node, selected } in drafts {
        let work = match selected {
            None => Work::Host(node.operator.clone()),
            Some(Selected { mut candidates, reads }) => {
                let choice = choices.next().expect("a chooser answers every problem");
                let choice = choice.map_err(|error| target.in_node(&node.name, error))?;
                Work::Device { candidate: candidates.swap_remove(choice), reads }
            }
        };
        tasks.push(Task {
            node: node.name.clone(),
            operator: node.operator.name().to_string(),
            flops: flops(node, graph),
            inputs: node.inputs.clone(),
            outputs: node.outputs.clone(),
            work,
        });
    }
    Ok(tasks)
}

/// True where all values that the kernels read or write can lie on the device.
fn is_resident(
    node: &Node,
    selected: &Selected,
    graph: &OptimizedGraph,
    target: &Target<'_>,
) -> bool {
    let read = read_inputs(&node.inputs, &selected.reads).flatten();
    let mut touched = read.chain(node.outputs.iter().copied().flatten());
    touched.all(|id| target.device_value(graph, id).is_some())
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
