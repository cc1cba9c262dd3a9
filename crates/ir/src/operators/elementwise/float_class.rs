//! IsInf and IsNaN: which elements are infinite, and which are no numbers.

use std::sync::Arc;

use super::inference::shaped_like_first;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, TensorData};
use crate::value::Value;

/// True for infinite elements of the signs asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsInf {
    /// Negative infinity counts.
    pub detect_negative: bool,
    /// Positive infinity counts.
    pub detect_positive: bool,
}

/// True for elements that are not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsNaN;

pub(super) fn build_is_inf(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(IsInf {
        detect_negative: source.attributes.flag_or("detect_negative", true)?,
        detect_positive: source.attributes.flag_or("detect_positive", true)?,
    }))
}

pub(super) fn build_is_nan(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(IsNaN))
}

/// Infinities and not-a-numbers keep their class when a double becomes a single, but finite doubles may turn
/// infinite; so doubles are told apart as doubles.
fn classify(
    x: &Tensor,
    single: impl Fn(f32) -> bool,
    double: impl Fn(f64) -> bool,
) -> Result<Vec<Value>, OperatorError> {
    let classes = match x.data() {
        TensorData::F64(elements) => elements.iter().map(|&x| double(x)).collect(),
        TensorData::Narrow(data_type, codes) if data_type.is_narrow_float() => {
            codes.iter().map(|&code| single(crate::narrow::decode(*data_type, code))).collect()
        }
        _ => x.to_f32s()?.iter().map(|&x| single(x)).collect(),
    };
    Ok(vec![Tensor::from_vec(x.shape().to_vec(), classes)?.into()])
}

impl Operator for IsInf {
    fn name(&self) -> &'static str {
        "IsInf"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (negative, positive) = (self.detect_negative, self.detect_positive);
        classify(
            inputs.tensor(0)?,
            |x| (negative && x == f32::NEG_INFINITY) || (positive && x == f32::INFINITY),
            |x| (negative && x == f64::NEG_INFINITY) || (positive && x == f64::INFINITY),
        )
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![shaped_like_first(inputs, Some(DataType::Bool))])
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(*self))
    }
}

impl Operator for IsNaN {
    fn name(&self) -> &'static str {
        "IsNaN"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        classify(inputs.tensor(0)?, f32::is_nan, f64::is_nan)
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![shaped_like_first(inputs, Some(DataType::Bool))])
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(*self))
    }
}
