//! ArgMax and ArgMin: where the extreme element along an axis stands.

use std::sync::Arc;

use crate::axis::{around_axis, normalise_axis, permuted_axis};
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::elementwise::number::with_numbers;
use crate::tensor::{Tensor, TensorData};
use crate::value::Value;

/// The index of the largest or smallest element along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgReduce {
    /// The largest rather than the smallest.
    pub largest: bool,
    /// The axis.
    pub axis: i64,
    /// The axis stays, with size 1.
    pub keep_dimensions: bool,
    /// Of equal elements the last counts rather than the first.
    pub select_last_index: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(ArgReduce {
        largest: source.operator == "ArgMax",
        axis: source.attributes.int_or("axis", 0)?,
        keep_dimensions: source.attributes.flag_or("keepdims", true)?,
        select_last_index: source.attributes.flag_or("select_last_index", false)?,
    }))
}

impl ArgReduce {
    fn reduced<T: Clone>(&self, shape: &[T], one: T) -> Result<Vec<T>, OperatorError> {
        let axis = normalise_axis(self.axis, shape.len())?;
        let mut shape = shape.to_vec();
        if self.keep_dimensions {
            shape[axis] = one;
        } else {
            shape.remove(axis);
        }
        Ok(shape)
    }

    fn search<T: Copy + PartialOrd>(
        &self,
        (before, along, after): (usize, usize, usize),
        elements: &[T],
    ) -> Vec<i64> {
        let wins = |candidate: T, best: T| match (self.largest, self.select_last_index) {
            (true, false) => candidate > best,
            (true, true) => candidate >= best,
            (false, false) => candidate < best,
            (false, true) => candidate <= best,
        };
        let mut indices = Vec::with_capacity(before * after);
        for block in elements.chunks_exact(along * after) {
            for start in 0..after {
                let mut best = (0, block[start]);
                for (index, &candidate) in block[start..].iter().step_by(after).enumerate() {
                    if wins(candidate, best.1) {
                        best = (index, candidate);
                    }
                }
                indices.push(best.0 as i64);
            }
        }
        indices
    }
}

impl Operator for ArgReduce {
    fn name(&self) -> &'static str {
        if self.largest { "ArgMax" } else { "ArgMin" }
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let shape = self.reduced(x.shape(), 1)?;
        let axis = normalise_axis(self.axis, x.rank())?;
        if x.shape()[axis] == 0 {
            return Err(OperatorError::Invalid(format!(
                "nothing to choose from along axis {axis} of shape {:?}",
                x.shape()
            )));
        }
        if x.is_empty() {
            return Ok(vec![Tensor::from_vec(shape, Vec::<i64>::new())?.into()]);
        }
        let lines = around_axis(x.shape(), axis);
        let indices = with_numbers!(x, elements => self.search(lines, elements), other => match other {
            TensorData::F16(_) | TensorData::BF16(_) => self.search(lines, &x.to_f32s()?),
            _ => return Err(OperatorError::WrongType {
                expected: "a number".into(),
                given: x.data_type(),
            }),
        });
        Ok(vec![Tensor::from_vec(shape, indices)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(|x| self.reduced(x, Some(1))).transpose()?;
        Ok(vec![Fact::partial(Some(DataType::I64), dimensions)])
    }

    fn flops(&self, inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        inputs.fact(0).and_then(Fact::element_count).unwrap_or(0) as u64
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let axis = permuted_axis(self.axis, permutation)?;
        self.keep_dimensions.then(|| Arc::new(ArgReduce { axis, ..*self }) as Arc<dyn Operator>)
    }
}
