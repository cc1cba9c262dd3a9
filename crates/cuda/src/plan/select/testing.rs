//! What the selectors' tests share: one node of the standard operator set, and the site that selection sees.

use std::sync::Arc;

use weft_ir::{Attributes, DataType, GraphBuilder, OptimizedGraph, Tensor, Value};

use crate::choosing::Choosing;
use crate::library_call::LibrarySet;
use crate::plan::site::Site;
use crate::{Chip, NoMemory, Precision, WeightStore};

/// One operand of the node.
pub(crate) enum Operand {
    /// Given when the graph runs.
    Given(DataType, Vec<usize>),
    /// Part of the graph.
    Constant(Tensor),
    /// Not there.
    Absent,
}

/// A computed operand of `f32`.
pub(crate) fn given(shape: &[usize]) -> Operand {
    Operand::Given(DataType::F32, shape.to_vec())
}

/// A constant list of integers.
pub(crate) fn integers(list: &[i64]) -> Operand {
    Operand::Constant(Tensor::vector(list.to_vec()))
}

/// A graph of one node.
pub(crate) struct OneNode {
    pub(crate) graph: OptimizedGraph,
    weights: WeightStore,
}

impl OneNode {
    pub(crate) fn new(operator: &str, operands: Vec<Operand>, attributes: Attributes) -> Self {
        Self::with_outputs(operator, operands, 1, attributes)
    }

    pub(crate) fn with_outputs(
        operator: &str,
        operands: Vec<Operand>,
        output_count: usize,
        attributes: Attributes,
    ) -> Self {
        let mut builder = GraphBuilder::new("one node", 18);
        let mut shapes = Vec::new();
        let mut operand = |(index, operand): (usize, Operand)| match operand {
            Operand::Absent => None,
            Operand::Constant(tensor) => {
                Some(builder.constant(&format!("constant {index}"), tensor))
            }
            Operand::Given(data_type, shape) => {
                let id = builder.input(&format!("input {index}"), data_type, &shape);
                shapes.push(shape);
                Some(id)
            }
        };
        let inputs: Vec<_> = operands.into_iter().enumerate().map(&mut operand).collect();
        let outputs = builder.node_with(operator, &inputs, output_count, attributes);
        for (index, id) in outputs.into_iter().enumerate() {
            builder.output(&format!("output {index}"), id);
        }
        let graph = builder.finish().unwrap().specialise_plainly(&shapes).unwrap();
        Self { graph, weights: WeightStore::new(Arc::new(NoMemory)) }
    }

    /// The node as selectors see it on a whole H200.
    pub(crate) fn site(&self, precision: Precision) -> Site<'_> {
        Site {
            node: &self.graph.graph().nodes()[0],
            graph: &self.graph,
            weights: &self.weights,
            chip: Chip::H200,
            precision,
            libraries: LibrarySet::default().into(),
            choosing: Choosing::Ranked,
        }
    }

    /// What the operator's own evaluation makes of inputs.
    pub(crate) fn evaluate(&self, inputs: &[Tensor]) -> Vec<Tensor> {
        let node = &self.graph.graph().nodes()[0];
        let mut inputs = inputs.iter().cloned();
        let value = |id: &Option<weft_ir::ValueId>| {
            id.map(|id| match self.graph.graph().constant(id) {
                Some(tensor) => Value::Tensor(tensor.clone()),
                None => Value::Tensor(inputs.next().expect("one tensor per given operand")),
            })
        };
        let values: Vec<Option<Value>> = node.inputs.iter().map(value).collect();
        let outputs = node.operator.evaluate(&weft_ir::Inputs::new(&values, node.outputs.len()));
        outputs.unwrap().into_iter().map(|value| value.into_tensor().unwrap()).collect()
    }
}
