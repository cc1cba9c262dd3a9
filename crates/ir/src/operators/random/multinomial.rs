//! Multinomial: classes drawn by their unnormalised log-probabilities.

use std::sync::Arc;

use super::generator::Generator;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::narrow::Rounding;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::elementwise::cast::data_type_attribute;
use crate::operators::elementwise::convert;
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// Draws class indices for each row of log-probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multinomial {
    /// How many to draw per row.
    pub sample_size: usize,
    /// The element type of the indices.
    pub data_type: DataType,
    /// The generator's seed.
    pub seed: Option<u32>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let sample_size = source.attributes.int_or("sample_size", 1)?;
    let sample_size = usize::try_from(sample_size).map_err(|_| OperatorError::Attribute {
        name: "sample_size".into(),
        problem: format!("{sample_size} is negative"),
    })?;
    let data_type = data_type_attribute(source, "dtype")?.unwrap_or(DataType::I32);
    let seed = Generator::seed(source.attributes.float("seed")?);
    Ok(Arc::new(Multinomial { sample_size, data_type, seed }))
}

impl Operator for Multinomial {
    fn name(&self) -> &'static str {
        "Multinomial"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let &[rows, classes] = x.shape() else {
            return Err(OperatorError::WrongKind { index: 0, expected: "a matrix" });
        };
        let shape = vec![rows, self.sample_size];
        let count = checked_count(&shape, DataType::I64)?;
        if classes == 0 && count > 0 {
            return Err(OperatorError::Invalid("there are no classes to draw from".into()));
        }
        let logits = x.to_f64s()?;
        let mut generator = Generator::new(self.seed);
        let mut drawn: Vec<i64> = Vec::with_capacity(count);
        for row in logits.chunks_exact(classes.max(1)) {
            let peak = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut total = 0.0;
            let bounds: Vec<f64> = row
                .iter()
                .map(|logit| {
                    total += (logit - peak).exp();
                    total
                })
                .collect();
            for _ in 0..self.sample_size {
                let place = generator.uniform() * total;
                let class = bounds.partition_point(|&bound| bound <= place);
                drawn.push(class.min(classes - 1) as i64);
            }
        }
        let drawn = Tensor::from_vec(shape, drawn)?;
        Ok(vec![convert(&drawn, self.data_type, Rounding::default())?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let rows = inputs.dimensions(0).and_then(|x| x.first().copied().flatten());
        Ok(vec![Fact::partial(Some(self.data_type), Some(vec![rows, Some(self.sample_size)]))])
    }

    fn is_deterministic(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_come_as_often_as_they_are_likely() {
        let odds = [0.2f64, 0.0, 0.8];
        let logits = odds.iter().map(|odds| odds.ln() + 5.0).collect();
        let x = Tensor::from_vec(vec![1, 3], logits).unwrap();
        let multinomial =
            Multinomial { sample_size: 10_000, data_type: DataType::I64, seed: Some(1) };
        let outputs = multinomial.evaluate(&Inputs::new(&[Some(x.into())], 1)).unwrap();
        let drawn = outputs[0].tensor().unwrap().elements::<i64>().unwrap();
        let count = |class| drawn.iter().filter(|&&drawn| drawn == class).count();
        assert!(count(0).abs_diff(2000) < 200 && count(1) == 0 && count(2).abs_diff(8000) < 200);
    }
}
