//! Binarizer: one above a threshold, zero below.

use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// One where the element is greater than the threshold.
#[derive(Clone, Debug)]
struct Binarizer {
    threshold: f32,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Binarizer { threshold: source.attributes.float_or("threshold", 0.0)? }))
}

impl Operator for Binarizer {
    fn name(&self) -> &'static str {
        "Binarizer"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let shape = x.shape().to_vec();
        let threshold = f64::from(self.threshold);
        let integers = || {
            let integers = x.to_i64s()?;
            Ok::<_, OperatorError>(
                integers.iter().map(|&e| i64::from(e as f64 > threshold)).collect(),
            )
        };
        let result = match x.data_type() {
            DataType::I64 => Tensor::from_vec::<i64>(shape, integers()?)?,
            DataType::I32 => {
                let integers: Vec<i64> = integers()?;
                Tensor::from_vec(shape, integers.into_iter().map(|e| e as i32).collect())?
            }
            data_type => {
                let flags = x.to_f64s()?.into_iter().map(|e| f64::from(u8::from(e > threshold)));
                Tensor::from_f64s(shape, data_type, flags.collect())?
            }
        };
        Ok(vec![result.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }
}
