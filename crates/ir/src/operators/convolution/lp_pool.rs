//! LpPool: the p-norm of each window.

use std::sync::Arc;

use super::pooling::Pooling;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

#[derive(Clone, Debug)]
struct LpPool {
    pooling: Pooling,
    p: i64,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let pooling = Pooling::from_source(source)?;
    Ok(Arc::new(LpPool { pooling, p: exponent(source)? }))
}

/// The norm's exponent.
pub(super) fn exponent(source: &NodeSource<'_>) -> Result<i64, OperatorError> {
    match source.attributes.int_or("p", 2)? {
        p @ 1.. => Ok(p),
        p => Err(OperatorError::Attribute { name: "p".into(), problem: format!("{p} is below 1") }),
    }
}

impl Operator for LpPool {
    fn name(&self) -> &'static str {
        "LpPool"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let p = self.p as f64;
        let (shape, y) = self.pooling.fold(
            x.shape(),
            &x.to_f64s()?,
            0.0f64,
            |sum: &mut f64, element, _, _| *sum += element.abs().powf(p),
            |sum, _| sum.powf(1.0 / p),
        )?;
        Ok(vec![Tensor::from_f64s(shape, x.data_type(), y)?.into()])
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
        Some(Arc::new(LpPool { pooling, p: self.p }))
    }
}
