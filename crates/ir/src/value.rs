//! What flows along a graph's edges: tensors, and the sequences and optionals some operators make of them.

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::tensor::Tensor;

/// One runtime value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A tensor, as nearly every value is.
    Tensor(Tensor),
    /// A list of tensors, which may differ in shape; with the element type, which an empty list needs too.
    Sequence(DataType, Vec<Tensor>),
    /// A value that may be absent.
    Optional(Option<Box<Value>>),
}

impl Value {
    /// The tensor, also where it stands inside an optional.
    pub fn tensor(&self) -> Option<&Tensor> {
        match self {
            Value::Tensor(tensor) => Some(tensor),
            Value::Optional(Some(inner)) => inner.tensor(),
            _ => None,
        }
    }

    /// The tensor by value.
    pub fn into_tensor(self) -> Result<Tensor, OperatorError> {
        match self {
            Value::Tensor(tensor) => Ok(tensor),
            Value::Optional(Some(inner)) => inner.into_tensor(),
            _ => Err(OperatorError::Invalid(
                "expected a tensor, found a sequence or an empty optional".into(),
            )),
        }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Value::Tensor(tensor)
    }
}
