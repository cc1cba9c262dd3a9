//! Bernoulli: ones with the probabilities given, else zeros.

use std::sync::Arc;

use super::generator::Generator;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::narrow::Rounding;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::elementwise::cast::data_type_attribute;
use crate::operators::elementwise::convert;
use crate::operators::elementwise::inference::shaped_like_first;
use crate::tensor::Tensor;
use crate::value::Value;

/// Each element is one with the probability that the input holds at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bernoulli {
    /// The element type; where absent, the input's.
    pub data_type: Option<DataType>,
    /// The generator's seed.
    pub seed: Option<u32>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let seed = Generator::seed(source.attributes.float("seed")?);
    Ok(Arc::new(Bernoulli { data_type: data_type_attribute(source, "dtype")?, seed }))
}

impl Operator for Bernoulli {
    fn name(&self) -> &'static str {
        "Bernoulli"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let mut generator = Generator::new(self.seed);
        let drawn = x.to_f64s()?.iter().map(|&odds| generator.uniform() < odds).collect();
        let drawn = Tensor::from_vec::<bool>(x.shape().to_vec(), drawn)?;
        let data_type = self.data_type.unwrap_or(x.data_type());
        Ok(vec![convert(&drawn, data_type, Rounding::default())?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![shaped_like_first(inputs, self.data_type.or(inputs.data_type(0)))])
    }

    fn is_deterministic(&self) -> bool {
        false
    }
}
