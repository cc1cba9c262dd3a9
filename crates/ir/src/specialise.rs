//! Specialising: a model with open dimensions becomes one with fixed shapes.

use std::collections::BTreeMap;

use crate::error::GraphError;
use crate::fact::Fact;
use crate::facts::{Facts, infer_leniently};
use crate::graph::{Dimension, Graph, ValueId};
use crate::rewrites::{self, Applied};

/// Sizes for a model's open dimensions.
#[derive(Clone, Debug)]
pub struct Dimensions {
    /// The size of an open first dimension.
    pub batch: usize,
    /// The sizes of named dimensions; they win over [`Dimensions::batch`].
    pub named: BTreeMap<String, usize>,
    /// The size of every other open dimension; without it they must all be named.
    pub otherwise: Option<usize>,
}

impl Dimensions {
    /// A batch, and every other open dimension named.
    pub fn batch(batch: usize) -> Self {
        Self { batch, named: BTreeMap::new(), otherwise: None }
    }
}

/// A graph whose shapes are fixed as far as they do not depend on data, rewritten and folded.
#[derive(Clone, Debug)]
pub struct OptimizedGraph {
    graph: Graph,
    facts: Facts,
    applied: Vec<Applied>,
}

impl OptimizedGraph {
    /// The rewritten graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What is known of every value.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What is known of one value.
    pub fn fact(&self, id: ValueId) -> &Fact {
        self.facts.of(id)
    }

    /// Which rewrites were applied, and how often.
    pub fn applied(&self) -> &[Applied] {
        &self.applied
    }

    /// What would be known of every value for inputs of other shapes, one per required input; where the graph as it
    /// stands refuses them, nothing.
    pub fn facts_for(&self, shapes: &[Vec<usize>]) -> Facts {
        infer_leniently(&self.graph, &input_facts(&self.graph, shapes))
    }

    /// Gives up the graph's hold on a constant, so that a device that has packed it need not keep both.
    pub fn release_constant(&mut self, id: ValueId) {
        self.graph.value_mut(id).constant = None;
        self.facts.release_constant(id);
    }
}

impl Graph {
    /// The shapes of the inputs that a caller gives, once the open dimensions are given sizes.
    pub fn input_shapes(&self, sizes: &Dimensions) -> Result<Vec<Vec<usize>>, GraphError> {
        let mut open = Vec::new();
        let mut shapes = Vec::new();
        for id in self.required_inputs() {
            let info = self.value(id);
            let Some(dimensions) =
                info.declared.as_ref().and_then(|declared| declared.dimensions.as_ref())
            else {
                return Err(GraphError::Input(format!(
                    "input '{}' does not declare its shape",
                    info.name
                )));
            };
            let mut shape = Vec::with_capacity(dimensions.len());
            for (axis, dimension) in dimensions.iter().enumerate() {
                let size = match dimension {
                    Dimension::Known(size) => Some(*size),
                    Dimension::Symbol(name) if sizes.named.contains_key(name) => {
                        sizes.named.get(name).copied()
                    }
                    _ if axis == 0 => Some(sizes.batch),
                    _ => sizes.otherwise,
                };
                match size {
                    Some(size) => shape.push(size),
                    None => {
                        open.push(format!("'{dimension}' (axis {axis} of input '{}')", info.name))
                    }
                }
            }
            shapes.push(shape);
        }
        if open.is_empty() {
            Ok(shapes)
        } else {
            Err(GraphError::Input(format!("no size is given for dimension {}", open.join(", "))))
        }
    }

    /// Checks one shape per required input against what the model declares.
    pub fn check_input_shapes(&self, shapes: &[Vec<usize>]) -> Result<(), GraphError> {
        let mut sizes: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
        for (id, shape) in self.required_inputs().zip(shapes) {
            let info = self.value(id);
            let Some(declared) = &info.declared else { continue };
            let Some(dimensions) = &declared.dimensions else { continue };
            let refuse = |why: String| {
                Err(GraphError::Input(format!(
                    "input '{}' of shape {shape:?}: {why} (declared {declared})",
                    info.name
                )))
            };
            if dimensions.len() != shape.len() {
                return refuse(format!(
                    "rank {} where {} is declared",
                    shape.len(),
                    dimensions.len()
                ));
            }
            for (axis, (dimension, &size)) in dimensions.iter().zip(shape).enumerate() {
                match dimension {
                    Dimension::Known(known) if *known != size => {
                        return refuse(format!("axis {axis} is {size}, must be {known}"));
                    }
                    Dimension::Symbol(name) => match sizes.get(name.as_str()) {
                        Some((other, input)) if *other != size => {
                            return refuse(format!(
                                "'{name}' is {size} here and {other} in input '{input}'"
                            ));
                        }
                        _ => {
                            sizes.insert(name, (size, &info.name));
                        }
                    },
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The graph for inputs of exactly these shapes, one per required input: shapes inferred, constants folded,
    /// operators fused, activations channels-last.
    pub fn specialise(&self, shapes: &[Vec<usize>]) -> Result<OptimizedGraph, GraphError> {
        self.specialise_with(shapes, rewrites::SPECIALISED)
    }

    /// The graph for inputs of exactly these shapes, with no rewrite but folding: what rewrites are compared with.
    pub fn specialise_plainly(&self, shapes: &[Vec<usize>]) -> Result<OptimizedGraph, GraphError> {
        self.specialise_with(shapes, &[])
    }

    pub(crate) fn specialise_with(
        &self,
        shapes: &[Vec<usize>],
        stages: &[rewrites::Stage],
    ) -> Result<OptimizedGraph, GraphError> {
        let expected = self.required_inputs().count();
        if shapes.len() != expected {
            return Err(GraphError::Input(format!(
                "the model takes {expected} inputs, {} given",
                shapes.len()
            )));
        }
        self.check_input_shapes(shapes)?;
        let mut graph = self.clone();
        let inputs = input_facts(&graph, shapes);
        let (facts, applied) = rewrites::run(&mut graph, &inputs, stages)?;
        Ok(OptimizedGraph { graph, facts, applied })
    }
}

/// What the given shapes, one per required input, say of every input.
fn input_facts(graph: &Graph, shapes: &[Vec<usize>]) -> Vec<Fact> {
    let mut given = shapes.iter();
    let fact = |&id: &ValueId| {
        if graph.constant(id).is_some() {
            return Fact::unknown();
        }
        match (given.next(), &graph.value(id).declared) {
            (Some(shape), Some(declared)) => Fact::new(declared.data_type, shape),
            _ => Fact::unknown(),
        }
    };
    graph.inputs().iter().map(fact).collect()
}
