//! DynamicQuantizeLinear: quantises to `u8` by the scale and zero point that the data itself suggests.

use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

use super::number;

#[derive(Debug)]
struct DynamicQuantizeLinear;

pub(super) fn build(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(DynamicQuantizeLinear))
}

impl Operator for DynamicQuantizeLinear {
    fn name(&self) -> &'static str {
        "DynamicQuantizeLinear"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let elements = x.elements::<f32>()?;
        // The range always holds zero, so that zero is exact.
        let greatest = elements.iter().copied().fold(0.0, f32::max);
        let least = elements.iter().copied().fold(0.0, f32::min);
        let range = if greatest == least { 1.0 } else { greatest - least };
        let scale = range / 255.0;
        let zero = (0.0 - least / scale).clamp(0.0, 255.0).round_ties_even();
        let numbers = elements.iter().map(|&e| (f64::from(e / scale), f64::from(zero)));
        let mut outputs = vec![
            number::write(x.shape().to_vec(), DataType::U8, numbers, true)?.into(),
            Tensor::scalar(scale).into(),
            Tensor::scalar(zero as u8).into(),
        ];
        outputs.truncate(inputs.output_count());
        Ok(outputs)
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        let mut facts = vec![
            Fact::partial(Some(DataType::U8), dimensions),
            Fact::new(DataType::F32, &[]),
            Fact::new(DataType::U8, &[]),
        ];
        facts.truncate(inputs.output_count());
        Ok(facts)
    }
}
