//! Max, Min, Sum and Mean of any number of tensors, broadcast together.

use std::sync::Arc;

use super::inference::broadcast;
use super::number::{Number, narrowed, widened, with_numbers};
use super::zip::zip_broadcast;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, TensorData};
use crate::value::Value;

/// One function of the elements at the same place of all inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variadic {
    /// Which function.
    pub function: VariadicFunction,
}

/// A function of any number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum VariadicFunction {
    Max,
    Min,
    Sum,
    Mean,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let function = match source.operator {
        "Max" => VariadicFunction::Max,
        "Min" => VariadicFunction::Min,
        "Sum" => VariadicFunction::Sum,
        "Mean" => VariadicFunction::Mean,
        other => return Err(OperatorError::Unsupported(other.to_string())),
    };
    Ok(Arc::new(Variadic { function }))
}

impl Operator for Variadic {
    fn name(&self) -> &'static str {
        match self.function {
            VariadicFunction::Max => "Max",
            VariadicFunction::Min => "Min",
            VariadicFunction::Sum => "Sum",
            VariadicFunction::Mean => "Mean",
        }
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let first = inputs.tensor(0)?;
        let is_half = matches!(first.data(), TensorData::F16(_) | TensorData::BF16(_));
        let tensors = (0..inputs.len())
            .map(|index| {
                let tensor = inputs.tensor(index)?;
                if tensor.data_type() != first.data_type() {
                    return Err(OperatorError::WrongType {
                        expected: first.data_type().to_string(),
                        given: tensor.data_type(),
                    });
                }
                // Halves are summed wide and rounded once.
                if is_half { widened(tensor) } else { Ok(tensor.clone()) }
            })
            .collect::<Result<Vec<_>, _>>()?;
        let result = with_numbers!(tensors[0], elements => fold(self.function, elements, &tensors), _other => {
            Err(OperatorError::WrongType {
                expected: "a number".into(),
                given: first.data_type(),
            })
        })?;
        let result = if is_half { narrowed(result, first.data_type())? } else { result };
        Ok(vec![result.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let data_type = (0..inputs.len()).find_map(|index| inputs.data_type(index));
        Ok(vec![broadcast(inputs, inputs.len(), data_type)?])
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(*self))
    }
}

fn fold<T: Number>(
    function: VariadicFunction,
    first: &[T],
    tensors: &[Tensor],
) -> Result<Tensor, OperatorError> {
    let mut shape = tensors[0].shape().to_vec();
    let mut folded = first.to_vec();
    for tensor in &tensors[1..] {
        let (left, right) = ((&shape[..], &folded[..]), (tensor.shape(), tensor.elements::<T>()?));
        (shape, folded) = match function {
            VariadicFunction::Max => zip_broadcast(left, right, T::greatest),
            VariadicFunction::Min => zip_broadcast(left, right, T::least),
            VariadicFunction::Sum | VariadicFunction::Mean => zip_broadcast(left, right, T::add),
        }?;
    }
    if function == VariadicFunction::Mean {
        let count = T::from_f64(tensors.len() as f64);
        folded.iter_mut().for_each(|sum| *sum = sum.divide(count));
    }
    Tensor::from_vec(shape, folded)
}
