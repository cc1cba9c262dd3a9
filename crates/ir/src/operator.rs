//! What an operator is: a node's computation, with its inference and its reference evaluation.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::attribute::Attributes;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::tensor::Tensor;
use crate::value::Value;

/// A node's computation with its attributes parsed and checked.
///
/// [`Operator::evaluate`] defines what the operator means; every other executor is tested against it.
pub trait Operator: fmt::Debug + Any + Send + Sync {
    /// The operator's name: ONNX's where ONNX has it.
    fn name(&self) -> &'static str;

    /// Computes the outputs, one per output that the node asks for (see [`Inputs::output_count`]).
    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError>;

    /// What is known of the outputs before they are computed. Must never contradict [`Operator::evaluate`];
    /// operators whose output shapes depend on data leave them unknown.
    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![Fact::unknown(); inputs.output_count()])
    }

    /// Floating-point operations of one evaluation: 2 per multiply-add, 0 for moving data.
    fn flops(&self, _inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        outputs.iter().filter_map(Fact::element_count).map(|count| count as u64).sum()
    }

    /// The operator that does the same to inputs whose axes were all permuted by `permutation`
    /// (new axis `i` is old axis `permutation[i]`), giving outputs permuted likewise.
    /// Asked only where every non-constant input has the permutation's rank.
    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        None
    }

    /// False where two evaluations on the same inputs may differ, so that the node must not be folded.
    fn is_deterministic(&self) -> bool {
        true
    }
}

impl dyn Operator {
    /// The concrete operator, where it is of type `T`.
    pub fn downcast<T: Operator>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// The values an operator is evaluated on.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    values: &'a [Option<Value>],
    output_count: usize,
}

impl<'a> Inputs<'a> {
    /// Inputs as listed by the node, absent ones as `None`, and the number of outputs it asks for.
    pub fn new(values: &'a [Option<Value>], output_count: usize) -> Self {
        Self { values, output_count }
    }

    /// How many inputs the node lists, absent ones included.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True where the node lists no inputs.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// How many outputs the node asks for.
    pub fn output_count(&self) -> usize {
        self.output_count
    }

    /// One input of any kind, where present.
    pub fn value(&self, index: usize) -> Option<&'a Value> {
        self.values.get(index)?.as_ref()
    }

    /// All inputs, absent ones as `None`.
    pub fn values(&self) -> &'a [Option<Value>] {
        self.values
    }

    /// A tensor that must be there.
    pub fn tensor(&self, index: usize) -> Result<&'a Tensor, OperatorError> {
        self.optional_tensor(index)?.ok_or(OperatorError::MissingInput(index))
    }

    /// A tensor that may be absent.
    pub fn optional_tensor(&self, index: usize) -> Result<Option<&'a Tensor>, OperatorError> {
        match self.value(index) {
            None => Ok(None),
            Some(value) => value
                .tensor()
                .map(Some)
                .ok_or(OperatorError::WrongKind { index, expected: "a tensor" }),
        }
    }

    /// A sequence that must be there.
    pub fn sequence(&self, index: usize) -> Result<(DataType, &'a [Tensor]), OperatorError> {
        let mut value = self.value(index).ok_or(OperatorError::MissingInput(index))?;
        while let Value::Optional(Some(inner)) = value {
            value = inner;
        }
        match value {
            Value::Sequence(data_type, tensors) => Ok((*data_type, tensors)),
            _ => Err(OperatorError::WrongKind { index, expected: "a sequence" }),
        }
    }
}

/// What is known of an operator's inputs when its outputs are inferred.
#[derive(Clone, Copy)]
pub struct InputFacts<'a> {
    facts: &'a [Option<&'a Fact>],
    output_count: usize,
}

impl<'a> InputFacts<'a> {
    /// Facts as listed by the node, absent inputs as `None`, and the number of outputs it asks for.
    pub fn new(facts: &'a [Option<&'a Fact>], output_count: usize) -> Self {
        Self { facts, output_count }
    }

    /// How many inputs the node lists, absent ones included.
    pub fn len(&self) -> usize {
        self.facts.len()
    }

    /// True where the node lists no inputs.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// How many outputs the node asks for.
    pub fn output_count(&self) -> usize {
        self.output_count
    }

    /// One input's fact; `None` where the input is absent.
    pub fn fact(&self, index: usize) -> Option<&'a Fact> {
        self.facts.get(index).copied().flatten()
    }

    /// One input's element type, where known.
    pub fn data_type(&self, index: usize) -> Option<DataType> {
        self.fact(index)?.data_type
    }

    /// One input's dimensions, where its rank is known.
    pub fn dimensions(&self, index: usize) -> Option<&'a [Option<usize>]> {
        self.fact(index)?.dimensions.as_deref()
    }

    /// One input's shape, where fully known.
    pub fn shape(&self, index: usize) -> Option<Vec<usize>> {
        self.fact(index)?.shape()
    }

    /// One input's value, where it is a constant.
    pub fn constant(&self, index: usize) -> Option<&'a Tensor> {
        self.fact(index)?.constant.as_ref()
    }

    /// One input's integers, where it is a constant of integers.
    pub fn constant_i64s(&self, index: usize) -> Option<Vec<i64>> {
        self.fact(index)?.constant_i64s()
    }

    /// True where every input that is present has a known type and shape.
    pub fn all_static(&self) -> bool {
        self.facts.iter().flatten().all(|fact| fact.is_static())
    }
}

/// What a model file says of one node: all that an operator is built from.
#[derive(Clone, Copy, Debug)]
pub struct NodeSource<'a> {
    /// The operator's domain; empty for the standard one.
    pub domain: &'a str,
    /// The operator's name in that domain.
    pub operator: &'a str,
    /// The version of the domain's operator set that the model asks for.
    pub opset: i64,
    /// The node's attributes.
    pub attributes: &'a Attributes,
    /// How many inputs the node lists, captured values included.
    pub input_count: usize,
    /// How many outputs the node lists.
    pub output_count: usize,
}

/// One line of the operator table: a name, and how to build the operator from a node.
pub struct Registration {
    /// The operator's domain; empty for the standard one.
    pub domain: &'static str,
    /// The operator's name in that domain.
    pub name: &'static str,
    /// Builds the operator, checking its attributes.
    pub build: fn(&NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError>,
}

impl Registration {
    /// An operator of the standard domain.
    pub const fn standard(
        name: &'static str,
        build: fn(&NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError>,
    ) -> Self {
        Self { domain: "", name, build }
    }
}
