//! Small graphs of one operator or a few, at awkward shapes, that a device must compute as the reference does.

mod convolutions;
mod elementwise;
mod layout;
mod recurrent;
mod reductions;
mod rows;
pub(crate) mod tenants;

use weft_ir::{Attributes, DataType, Graph, GraphBuilder, Tensor, ValueId};

/// A graph and what it is given.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) graph: Graph,
    pub(crate) inputs: Vec<Tensor>,
}

/// Every case.
pub(crate) fn all() -> Vec<Case> {
    [
        convolutions::cases(),
        elementwise::cases(),
        layout::cases(),
        recurrent::cases(),
        reductions::cases(),
        rows::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// One operand of an operator.
#[derive(Clone)]
pub(crate) enum Operand {
    /// Given when the graph runs.
    Given(Tensor),
    /// Part of the graph.
    Constant(Tensor),
    /// Not there.
    Absent,
}

/// Multiples of 1/64 between -2 and 2, which every precision holds exactly, that look random and differ from seed to
/// seed.
pub(crate) fn numbers(count: usize, seed: u64) -> impl Iterator<Item = f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    (0..count).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 56) as f32 / 64.0 - 2.0
    })
}

fn tensor<T: weft_ir::Element>(shape: &[usize], make: impl Fn(f32) -> T) -> Tensor {
    let count = shape.iter().product();
    let seed = shape.iter().fold(count as u64 + 1, |seed, &size| seed * 31 + size as u64);
    Tensor::from_vec(shape.to_vec(), numbers(count, seed).map(make).collect()).unwrap()
}

/// A given operand of floats between -2 and 2.
pub(crate) fn floats(shape: &[usize]) -> Operand {
    Operand::Given(tensor(shape, |x| x))
}

/// A given operand of floats above 0 and up to 2.
pub(crate) fn positive(shape: &[usize]) -> Operand {
    Operand::Given(tensor(shape, |x| if x == 0.0 { 1.0 } else { x.abs() }))
}

/// A given operand of integers from `low` up to below `high`.
pub(crate) fn integers(shape: &[usize], low: i64, high: i64) -> Operand {
    Operand::Given(tensor(shape, |x| between(x, low, high)))
}

/// The same as 32-bit integers.
pub(crate) fn integers_32(shape: &[usize], low: i64, high: i64) -> Operand {
    Operand::Given(tensor(shape, |x| between(x, low, high) as i32))
}

fn between(x: f32, low: i64, high: i64) -> i64 {
    low + ((x + 2.0) / 4.0 * (high - low) as f32) as i64
}

/// A given operand of truth values.
pub(crate) fn bools(shape: &[usize]) -> Operand {
    Operand::Given(tensor(shape, |x| x > 0.3))
}

/// A constant list of integers.
pub(crate) fn list(values: &[i64]) -> Operand {
    Operand::Constant(Tensor::vector(values.to_vec()))
}

/// A constant scalar.
pub(crate) fn scalar(value: f32) -> Operand {
    Operand::Constant(Tensor::scalar(value))
}

/// A constant of floats between -2 and 2.
pub(crate) fn weights(shape: &[usize]) -> Operand {
    Operand::Constant(tensor(shape, |x| x))
}

/// No attributes.
pub(crate) fn none() -> Attributes {
    Attributes::new()
}

/// A graph under construction together with what it is given.
pub(crate) struct CaseBuilder {
    pub(crate) builder: GraphBuilder,
    pub(crate) inputs: Vec<Tensor>,
}

impl CaseBuilder {
    pub(crate) fn new(opset: i64) -> Self {
        Self { builder: GraphBuilder::new("case", opset), inputs: Vec::new() }
    }

    /// Adds an operand.
    pub(crate) fn operand(&mut self, operand: &Operand) -> Option<ValueId> {
        match operand {
            Operand::Absent => None,
            Operand::Constant(tensor) => {
                let name = format!("constant_{}", self.builder.graph().values().len());
                Some(self.builder.constant(&name, tensor.clone()))
            }
            Operand::Given(tensor) => {
                let name = format!("input_{}", self.inputs.len());
                self.inputs.push(tensor.clone());
                Some(self.builder.input(&name, tensor.data_type(), tensor.shape()))
            }
        }
    }

    /// Adds a node of one output.
    pub(crate) fn node(
        &mut self,
        operator: &str,
        inputs: &[ValueId],
        attributes: Attributes,
    ) -> ValueId {
        self.builder.node(operator, inputs, attributes)
    }

    /// The case whose outputs are `values`.
    pub(crate) fn finish(mut self, name: &str, values: &[ValueId]) -> Case {
        for (index, &id) in values.iter().enumerate() {
            self.builder.output(&format!("output_{index}"), id);
        }
        let graph = self.builder.finish().unwrap_or_else(|error| panic!("{name}: {error}"));
        Case { name: name.to_string(), graph, inputs: self.inputs }
    }
}

/// The version of the operator set that cases are written in.
pub(crate) const OPSET: i64 = 20;

/// One operator with one output.
pub(crate) fn one(operator: &str, operands: &[Operand], attributes: Attributes) -> Case {
    several(operator, operands, 1, attributes)
}

/// One operator with several outputs.
pub(crate) fn several(
    operator: &str,
    operands: &[Operand],
    outputs: usize,
    attributes: Attributes,
) -> Case {
    let mut case = CaseBuilder::new(OPSET);
    let inputs: Vec<Option<ValueId>> =
        operands.iter().map(|operand| case.operand(operand)).collect();
    let name = name(operator, operands, &attributes);
    let outputs = case.builder.node_with(operator, &inputs, outputs, attributes);
    case.finish(&name, &outputs)
}

/// What a case is called: the operator, its operands' types and shapes, and its attributes.
fn name(operator: &str, operands: &[Operand], attributes: &Attributes) -> String {
    let described = operands.iter().map(|operand| match operand {
        Operand::Absent => "-".to_string(),
        Operand::Given(tensor) => format!("{}{:?}", short(tensor.data_type()), tensor.shape()),
        Operand::Constant(tensor) => {
            format!("const {}{:?}", short(tensor.data_type()), tensor.shape())
        }
    });
    let attributes: Vec<String> =
        attributes.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    format!("{operator}({}) {}", described.collect::<Vec<_>>().join(", "), attributes.join(" "))
}

fn short(data_type: DataType) -> String {
    data_type.to_string().replace("float", "f").replace("int", "i")
}
