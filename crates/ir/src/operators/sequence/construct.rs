//! SequenceConstruct and SequenceEmpty: new sequences.

use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::operator::{Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// The inputs as a sequence.
#[derive(Clone, Debug)]
struct SequenceConstruct;

pub(super) fn build_construct(
    _source: &NodeSource<'_>,
) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(SequenceConstruct))
}

impl Operator for SequenceConstruct {
    fn name(&self) -> &'static str {
        "SequenceConstruct"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let data_type = inputs.tensor(0)?.data_type();
        let tensor = |index| {
            let tensor = inputs.tensor(index)?;
            same_type(data_type, tensor)?;
            Ok(tensor.clone())
        };
        let tensors =
            (0..inputs.len()).map(tensor).collect::<Result<Vec<Tensor>, OperatorError>>()?;
        Ok(vec![Value::Sequence(data_type, tensors)])
    }
}

/// Refuses a tensor that does not belong into a sequence of the given type.
pub(super) fn same_type(data_type: DataType, tensor: &Tensor) -> Result<(), OperatorError> {
    match tensor.data_type() {
        given if given == data_type => Ok(()),
        given => Err(OperatorError::WrongType { expected: data_type.to_string(), given }),
    }
}

/// A sequence without elements.
#[derive(Clone, Debug)]
struct SequenceEmpty {
    data_type: DataType,
}

pub(super) fn build_empty(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let data_type = match source.attributes.int("dtype")? {
        None => DataType::F32,
        Some(code) => DataType::from_onnx(code).ok_or_else(|| OperatorError::Attribute {
            name: "dtype".into(),
            problem: format!("{code} is no element type"),
        })?,
    };
    Ok(Arc::new(SequenceEmpty { data_type }))
}

impl Operator for SequenceEmpty {
    fn name(&self) -> &'static str {
        "SequenceEmpty"
    }

    fn evaluate(&self, _inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        Ok(vec![Value::Sequence(self.data_type, Vec::new())])
    }
}
