//! CumSum and CumProd: running totals along an axis.

use std::sync::Arc;

use super::lines::for_each_line;
use crate::axis::{around_axis, normalise_axis};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::elementwise::inference::like_first;
use crate::operators::elementwise::number::{Number, narrowed, widened, with_numbers};
use crate::tensor::{Tensor, TensorData};
use crate::value::Value;

/// The sum or product of all elements up to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cumulative {
    /// A product rather than a sum.
    pub product: bool,
    /// The element itself does not count.
    pub exclusive: bool,
    /// From the end of the axis.
    pub reverse: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Cumulative {
        product: source.operator == "CumProd",
        exclusive: source.attributes.flag_or("exclusive", false)?,
        reverse: source.attributes.flag_or("reverse", false)?,
    }))
}

impl Cumulative {
    fn along(&self, x: &Tensor, axis: usize) -> Result<Tensor, OperatorError> {
        with_numbers!(x, elements => self.run(x.shape(), elements, axis), other => match other {
            TensorData::F16(_) | TensorData::BF16(_) => {
                narrowed(self.along(&widened(x)?, axis)?, x.data_type())
            }
            _ => Err(OperatorError::WrongType {
                expected: "a number".into(),
                given: x.data_type(),
            }),
        })
    }

    fn run<T: Number>(
        &self,
        shape: &[usize],
        elements: &[T],
        axis: usize,
    ) -> Result<Tensor, OperatorError> {
        let mut elements = elements.to_vec();
        let initial = if self.product { T::ONE } else { T::ZERO };
        let accumulate = |line: &mut [T]| {
            let mut total = initial;
            let mut step = |element: &mut T| {
                let before = total;
                total = if self.product { total.multiply(*element) } else { total.add(*element) };
                *element = if self.exclusive { before } else { total };
            };
            if self.reverse {
                line.iter_mut().rev().for_each(&mut step);
            } else {
                line.iter_mut().for_each(&mut step);
            }
        };
        if !elements.is_empty() {
            for_each_line(&mut elements, around_axis(shape, axis), accumulate);
        }
        Tensor::from_vec(shape.to_vec(), elements)
    }
}

impl Operator for Cumulative {
    fn name(&self) -> &'static str {
        if self.product { "CumProd" } else { "CumSum" }
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let axis = match inputs.tensor(1)?.to_i64s()?[..] {
            [axis] => normalise_axis(axis, x.rank())?,
            _ => return Err(OperatorError::Invalid("the axis must be one integer".into())),
        };
        Ok(vec![self.along(x, axis)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![like_first(inputs)])
    }
}
