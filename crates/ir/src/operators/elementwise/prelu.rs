//! PRelu: a leaky rectifier whose slopes are a tensor.

use std::sync::Arc;

use super::inference::like_first;
use super::number::{Number, narrowed, widened, with_numbers};
use super::zip::zip_broadcast;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, TensorData};
use crate::value::Value;

/// `x` where positive, else `slope * x`, with the slopes broadcast to `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PRelu;

pub(super) fn build(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(PRelu))
}

impl Operator for PRelu {
    fn name(&self) -> &'static str {
        "PRelu"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        Ok(vec![leak(inputs.tensor(0)?, inputs.tensor(1)?)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![like_first(inputs)])
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(*self))
    }
}

fn leak(x: &Tensor, slope: &Tensor) -> Result<Tensor, OperatorError> {
    fn run<T: Number>(x: &Tensor, elements: &[T], slope: &Tensor) -> Result<Tensor, OperatorError> {
        let slopes = (slope.shape(), slope.elements::<T>()?);
        let (shape, leaked) = zip_broadcast((x.shape(), elements), slopes, |x, slope| {
            if x < T::ZERO { slope.multiply(x) } else { x }
        })?;
        if shape != x.shape() {
            return Err(OperatorError::Shapes {
                left: x.shape().to_vec(),
                right: slope.shape().to_vec(),
            });
        }
        Tensor::from_vec(shape, leaked)
    }
    with_numbers!(x, elements => run(x, elements, slope), halves => match halves {
        TensorData::F16(_) | TensorData::BF16(_) => {
            narrowed(leak(&widened(x)?, &widened(slope)?)?, x.data_type())
        }
        _ => Err(OperatorError::WrongType { expected: "a number".into(), given: x.data_type() }),
    })
}
