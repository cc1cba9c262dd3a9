//! A model under construction: its graph, and the weights drawn for it.

use weft_ir::{
    Attributes, DataType, Dimension, Element, Graph, GraphBuilder, GraphError, Tensor, ValueId,
};

use crate::ZooOptions;
use crate::entry::Entry;
use crate::error::ZooError;
use crate::weights::{Spread, draw};

const OPSET: i64 = 17;

/// A value on its way through the layers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signal {
    pub(crate) id: ValueId,
    /// The size of the axis that layers mix: 1 in images, the last one elsewhere.
    pub(crate) channels: usize,
    /// The mean square to be expected. Each layer draws its weights so that what it gives has about 1, whatever comes in:
    /// that is what keeps deep models from exploding or vanishing.
    pub(crate) energy: f32,
}

impl Signal {
    /// The same with another value and energy.
    pub(crate) fn then(self, id: ValueId, energy: f32) -> Self {
        Self { id, energy, ..self }
    }
}

/// A model under construction.
#[derive(Debug)]
pub(crate) struct Network {
    builder: GraphBuilder,
    inputs: Vec<Signal>,
    seed: u64,
    constants: usize,
    parameters: u64,
}

impl Network {
    pub(crate) fn new(entry: &Entry, options: &ZooOptions) -> Result<Self, ZooError> {
        let mut builder = GraphBuilder::new(entry.name, OPSET);
        let mut inputs = Vec::new();
        for (name, tensor_type) in entry.inputs(options)? {
            let dimensions = tensor_type.dimensions.unwrap_or_default();
            let id = builder.symbolic_input(name, tensor_type.data_type, &dimensions);
            let channel_axis = if dimensions.len() == 4 { 1 } else { dimensions.len() - 1 };
            let channels = match dimensions.get(channel_axis) {
                Some(Dimension::Known(channels)) => *channels,
                _ => 1,
            };
            inputs.push(Signal { id, channels, energy: 1.0 });
        }
        Ok(Self { builder, inputs, seed: options.seed, constants: 0, parameters: 0 })
    }

    /// The input at a place in the entry's list.
    pub(crate) fn input(&self, index: usize) -> Signal {
        self.inputs[index]
    }

    /// The numbers drawn so far that training would learn.
    #[cfg(test)]
    pub(crate) fn parameters(&self) -> u64 {
        self.parameters
    }

    /// A learnt tensor.
    pub(crate) fn parameter(&mut self, name: &str, shape: &[usize], spread: Spread) -> ValueId {
        self.parameters += shape.iter().product::<usize>() as u64;
        self.statistic(name, shape, spread)
    }

    /// A tensor that training keeps but does not learn.
    pub(crate) fn statistic(&mut self, name: &str, shape: &[usize], spread: Spread) -> ValueId {
        let elements = draw(self.seed, name, shape.iter().product(), spread);
        self.tensor(name, shape, elements)
    }

    /// A tensor of given elements.
    pub(crate) fn tensor<T: Element>(
        &mut self,
        name: &str,
        shape: &[usize],
        elements: Vec<T>,
    ) -> ValueId {
        let tensor = Tensor::from_vec(shape.to_vec(), elements);
        self.builder.constant(name, tensor.expect("as many elements as the shape has room for"))
    }

    fn anonymous<T: Element>(&mut self, shape: &[usize], elements: Vec<T>) -> ValueId {
        self.constants += 1;
        self.tensor(&format!("constant_{}", self.constants), shape, elements)
    }

    /// A constant without axes.
    pub(crate) fn scalar<T: Element>(&mut self, element: T) -> ValueId {
        self.anonymous(&[], vec![element])
    }

    /// A constant list, as shapes and axes are given.
    pub(crate) fn list<T: Element>(&mut self, elements: &[T]) -> ValueId {
        self.anonymous(&[elements.len()], elements.to_vec())
    }

    /// A node without attributes.
    pub(crate) fn op(&mut self, operator: &str, inputs: &[ValueId]) -> ValueId {
        self.builder.node(operator, inputs, Attributes::new())
    }

    /// A node with attributes.
    pub(crate) fn op_with(
        &mut self,
        operator: &str,
        inputs: &[ValueId],
        attributes: Attributes,
    ) -> ValueId {
        self.builder.node(operator, inputs, attributes)
    }

    /// A node with absent inputs or several outputs.
    pub(crate) fn op_outputs(
        &mut self,
        operator: &str,
        inputs: &[Option<ValueId>],
        outputs: usize,
        attributes: Attributes,
    ) -> Vec<ValueId> {
        self.builder.node_with(operator, inputs, outputs, attributes)
    }

    /// Makes a value an f32 output of declared dimensions.
    pub(crate) fn output(&mut self, name: &str, id: ValueId, dimensions: &[Dimension]) {
        self.builder.output(name, id);
        self.builder.declare(id, DataType::F32, dimensions);
    }

    pub(crate) fn finish(self) -> Result<Graph, GraphError> {
        self.builder.finish()
    }
}

/// The dimension that stands for the number of requests.
pub(crate) fn batch() -> Dimension {
    Dimension::Symbol("batch".into())
}

/// The dimension that stands for the length of a sentence or series.
pub(crate) fn sequence() -> Dimension {
    Dimension::Symbol("sequence".into())
}

/// A dimension that never varies.
pub(crate) fn fixed(size: usize) -> Dimension {
    Dimension::Known(size)
}
