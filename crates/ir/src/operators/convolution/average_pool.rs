//! AveragePool: the mean of each window.

use std::sync::Arc;

use super::pooling::Pooling;
use super::window::AxisWindow;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::linear::scalar::Scalar;
use crate::tensor::Tensor;
use crate::value::Value;

/// The mean over each window.
#[derive(Clone, Debug)]
pub struct AveragePool {
    /// The window.
    pub pooling: Pooling,
    /// Padding counts as zeros instead of not at all.
    pub count_include_pad: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(AveragePool {
        pooling: Pooling::from_source(source)?,
        count_include_pad: source.attributes.int_or("count_include_pad", 0)? != 0,
    }))
}

impl AveragePool {
    /// How many elements the mean at each place along one axis is over.
    pub fn counts(&self, axis: &AxisWindow) -> Vec<usize> {
        let count = |output| match self.count_include_pad {
            true => axis.taps_in_padded(output),
            false => (0..axis.kernel).filter(|&tap| axis.source(output, tap).is_some()).count(),
        };
        (0..axis.output).map(count).collect()
    }

    fn pool<T: Scalar>(
        &self,
        x: &Tensor,
        divide: impl Fn(T, usize) -> T,
    ) -> Result<Tensor, OperatorError> {
        let axes = self.pooling.axes(x.shape())?;
        let mut counts = vec![1];
        for axis in &axes {
            let along = self.counts(axis);
            counts = counts.iter().flat_map(|n| along.iter().map(move |m| n * m)).collect();
        }
        let (shape, y) = self.pooling.fold(
            x.shape(),
            &T::read(x)?,
            T::default(),
            |sum: &mut T, element, _, _| *sum = sum.multiply_add(T::ONE, element),
            |&sum, position| divide(sum, counts[position]),
        )?;
        T::write(shape, x.data_type(), y)
    }
}

impl Operator for AveragePool {
    fn name(&self) -> &'static str {
        "AveragePool"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let y = match x.data_type() {
            DataType::F64 => self.pool::<f64>(x, |sum, count| sum / count as f64)?,
            _ => self.pool::<f32>(x, |sum, count| sum / count as f32)?,
        };
        Ok(vec![y.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions =
            inputs.dimensions(0).map(|x| self.pooling.output_dimensions(x)).transpose()?;
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        self.pooling.flops(outputs)
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let pooling = self.pooling.permuted(permutation)?;
        Some(Arc::new(AveragePool { pooling, ..self.clone() }))
    }
}
