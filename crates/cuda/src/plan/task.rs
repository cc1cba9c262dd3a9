//! What a plan has to compute: the graph's nodes, alone or in chains, each with the kernel chosen for it or the host.

use std::collections::HashMap;
use std::sync::Arc;

use weft_device::DeviceError;
use weft_ir::operators::layout::is_view;
use weft_ir::{Fact, InputFacts, Node, Operator, OptimizedGraph, ValueId};

use super::chooser::{Extent, Problem};
use super::select::elementwise::{ChainSelected, select_chain};
use super::select::linear::select_siblings;
use super::select::pooled_conv::select_pooled;
use super::site::{Selected, Selection, Site};
use super::target::Target;
use crate::launch::{Argument, Candidate};

/// Something that is computed in one go.
pub(super) struct Task {
    /// The node's name; of several, that of the one that tells most.
    pub(super) node: String,
    pub(super) operator: String,
    pub(super) flops: u64,
    pub(super) inputs: Vec<Option<ValueId>>,
    pub(super) outputs: Vec<Option<ValueId>>,
    pub(super) work: Work,
}

/// What computes a task.
pub(super) enum Work {
    /// Kernels, which read some of the task's inputs as the plan stores them, and some as the caller gives them.
    Device { candidate: Candidate, reads: Vec<usize>, given: Vec<usize> },
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

/// The inputs that a candidate reads as the caller gives them.
fn given_inputs(candidate: &Candidate) -> Vec<usize> {
    fn in_argument(argument: &Argument) -> Vec<usize> {
        match argument {
            Argument::Given(index) => vec![*index],
            Argument::Addresses(all) => all.iter().flat_map(in_argument).collect(),
            Argument::TensorMap(map) => in_argument(&map.base),
            _ => Vec::new(),
        }
    }
    candidate.arguments().flat_map(in_argument).collect()
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
pub(crate) type Selector<'a> = dyn Fn(&Site<'_>) -> Selection + 'a;

/// Turns every node into a task, or into a view where it only changes a shape; `groups` of several nodes become one
/// task where one kernel computes them.
pub(super) fn tasks(
    graph: &OptimizedGraph,
    target: &Target<'_>,
    groups: &[Vec<usize>],
    selector: &Selector<'_>,
) -> Result<Tasks, DeviceError> {
    let nodes = graph.graph().nodes();
    let site = |&index: &usize| Site {
        node: &nodes[index],
        graph,
        weights: target.weights,
        chip: target.chip,
        precision: target.precision,
        libraries: target.libraries,
        choosing: target.choosing,
    };
    let mut views = Views::default();
    let mut drafts = Vec::new();
    for group in groups {
        let sites: Vec<Site<'_>> = group.iter().map(site).collect();
        let joined = [Draft::of_siblings, Draft::of_pooled, Draft::of_chain];
        let mut joined = joined.iter().map(|join| join(&sites, target));
        if let Some(draft) = joined.find_map(Result::transpose) {
            drafts.push(draft?);
            continue;
        }
        for site in &sites {
            if let Some((input, output)) = view_of(site.node, graph, target) {
                let root = views.root(input);
                views.0.insert(output, root);
            } else {
                drafts.push(Draft::of_node(site, target, selector)?);
            }
        }
    }
    Ok(Tasks { tasks: choose(drafts, graph, target)?, views })
}

/// A task before it is decided how it is computed.
struct Draft<'a> {
    /// The only node, or the one of several that tells most: the last one of a chain, and the convolution before a pool.
    node: &'a Node,
    flops: u64,
    inputs: Vec<Option<ValueId>>,
    outputs: Vec<Option<ValueId>>,
    /// `None` where the host computes it.
    selected: Option<Selected>,
}

impl<'a> Draft<'a> {
    fn of_node(
        site: &Site<'a>,
        target: &Target<'_>,
        selector: &Selector<'_>,
    ) -> Result<Self, DeviceError> {
        let node = site.node;
        let selected = selector(site).map_err(|error| target.in_node(&node.name, error))?;
        let mut draft = Self {
            node,
            flops: flops(node, site.graph),
            inputs: node.inputs.clone(),
            outputs: node.outputs.clone(),
            selected,
        };
        if !draft.is_resident(site.graph, target) {
            draft.selected = None;
        }
        Ok(draft)
    }

    /// `None` where there is one node alone, or they are not products that one launch computes.
    fn of_siblings(sites: &[Site<'a>], target: &Target<'_>) -> Result<Option<Self>, DeviceError> {
        let [_, .., last] = sites else { return Ok(None) };
        let selected =
            select_siblings(sites).map_err(|error| target.in_node(&last.node.name, error))?;
        let Some(selected) = selected else { return Ok(None) };
        let draft = Self {
            node: last.node,
            flops: sites.iter().map(|site| flops(site.node, site.graph)).sum(),
            selected: Some(selected),
            inputs: vec![last.node.input(0)],
            outputs: sites.iter().map(|site| site.node.output()).collect(),
        };
        Ok(draft.is_resident(last.graph, target).then_some(draft))
    }

    /// `None` where they are no convolution with its pool that one kernel computes.
    fn of_pooled(sites: &[Site<'a>], target: &Target<'_>) -> Result<Option<Self>, DeviceError> {
        let [conv, pool] = sites else { return Ok(None) };
        let selected =
            select_pooled(sites).map_err(|error| target.in_node(&conv.node.name, error))?;
        let Some(selected) = selected else { return Ok(None) };
        let draft = Self {
            node: conv.node,
            flops: sites.iter().map(|site| flops(site.node, site.graph)).sum(),
            selected: Some(selected),
            inputs: conv.node.inputs.clone(),
            outputs: pool.node.outputs.clone(),
        };
        Ok(draft.is_resident(pool.graph, target).then_some(draft))
    }

    /// `None` where there is one node alone, or no kernel for all of them.
    fn of_chain(sites: &[Site<'a>], target: &Target<'_>) -> Result<Option<Self>, DeviceError> {
        let [_, .., last] = sites else { return Ok(None) };
        let chain = select_chain(sites).map_err(|error| target.in_node(&last.node.name, error))?;
        let Some(ChainSelected { inputs, output, candidate }) = chain else { return Ok(None) };
        let draft = Self {
            node: last.node,
            flops: sites.iter().map(|site| flops(site.node, site.graph)).sum(),
            selected: Some(Selected::only(candidate, (0..inputs.len()).collect())),
            inputs: inputs.into_iter().map(Some).collect(),
            outputs: vec![Some(output)],
        };
        Ok(draft.is_resident(last.graph, target).then_some(draft))
    }

    /// True where all values that the kernels read or write can lie on the device.
    fn is_resident(&self, graph: &OptimizedGraph, target: &Target<'_>) -> bool {
        let Some(selected) = &self.selected else { return true };
        let read = read_inputs(&self.inputs, &selected.reads).flatten();
        let mut touched = read.chain(self.outputs.iter().copied().flatten());
        touched.all(|id| target.device_value(graph, id).is_some())
    }
}

/// Decides among the candidates of all tasks at once.
fn choose(
    drafts: Vec<Draft<'_>>,
    graph: &OptimizedGraph,
    target: &Target<'_>,
) -> Result<Vec<Task>, DeviceError> {
    let extent = |id: ValueId| {
        let value = target.device_value(graph, id)?;
        Some(Extent { storage: value.storage, size_bytes: value.size_bytes() })
    };
    let given_extent = |id: ValueId| {
        let value = target.device_value(graph, id)?.given();
        Some(Extent { storage: value.storage, size_bytes: value.size_bytes() })
    };
    let mut problems = Vec::new();
    for draft in &drafts {
        let Some(selected) = &draft.selected else { continue };
        let read = read_inputs(&draft.inputs, &selected.reads);
        let mut inputs: Vec<Option<Extent>> = read.map(|id| id.and_then(extent)).collect();
        for index in selected.candidates.iter().flat_map(given_inputs) {
            inputs[index] = draft.inputs[index].and_then(given_extent);
        }
        problems.push(Problem {
            operator: selected.operator.as_deref(),
            precision: target.precision,
            candidates: &selected.candidates,
            reference: selected.reference.as_ref(),
            inputs,
            outputs: draft.outputs.iter().map(|id| id.and_then(extent)).collect(),
        });
    }
    let mut choices = target.chooser.choose(&problems).into_iter();
    let mut tasks = Vec::with_capacity(drafts.len());
    for Draft { node, flops, inputs, outputs, selected } in drafts {
        let work = match selected {
            None => Work::Host(node.operator.clone()),
            Some(Selected { mut candidates, reads, .. }) => {
                let choice = choices.next().expect("a chooser answers every problem");
                let choice = choice.map_err(|error| target.in_node(&node.name, error))?;
                let candidate = candidates.swap_remove(choice);
                let given = given_inputs(&candidate);
                Work::Device { candidate, reads, given }
            }
        };
        tasks.push(Task {
            node: node.name.clone(),
            operator: node.operator.name().to_string(),
            flops,
            inputs,
            outputs,
            work,
        });
    }
    Ok(tasks)
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
