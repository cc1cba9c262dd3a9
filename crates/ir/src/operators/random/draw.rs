//! RandomNormal, RandomUniform and their Like versions: tensors of independent random numbers.

use std::sync::Arc;

use super::generator::Generator;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::elementwise::cast::data_type_attribute;
use crate::operators::elementwise::inference::shaped_like_first;
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// Random numbers of one distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Random {
    /// What they are drawn from.
    pub distribution: Distribution,
    /// The shape; where absent, the input's.
    pub shape: Option<Vec<usize>>,
    /// The element type; where absent, the input's.
    pub data_type: Option<DataType>,
    /// The generator's seed.
    pub seed: Option<u32>,
}

/// What random numbers are drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Distribution {
    Normal { mean: f32, scale: f32 },
    Uniform { low: f32, high: f32 },
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let distribution = if source.operator.starts_with("RandomNormal") {
        Distribution::Normal {
            mean: attributes.float_or("mean", 0.0)?,
            scale: attributes.float_or("scale", 1.0)?,
        }
    } else {
        Distribution::Uniform {
            low: attributes.float_or("low", 0.0)?,
            high: attributes.float_or("high", 1.0)?,
        }
    };
    let data_type = data_type_attribute(source, "dtype")?;
    let (shape, data_type) = if source.operator.ends_with("Like") {
        (None, data_type)
    } else {
        let missing = || OperatorError::Attribute {
            name: "shape".into(),
            problem: "must be a list of sizes".into(),
        };
        let shape = attributes.ints("shape")?.ok_or_else(missing)?;
        let shape: Result<Vec<usize>, _> = shape.iter().map(|&size| size.try_into()).collect();
        (Some(shape.map_err(|_| missing())?), Some(data_type.unwrap_or(DataType::F32)))
    };
    let seed = Generator::seed(attributes.float("seed")?);
    Ok(Arc::new(Random { distribution, shape, data_type, seed }))
}

impl Operator for Random {
    fn name(&self) -> &'static str {
        match (self.distribution, &self.shape) {
            (Distribution::Normal { .. }, Some(_)) => "RandomNormal",
            (Distribution::Normal { .. }, None) => "RandomNormalLike",
            (Distribution::Uniform { .. }, Some(_)) => "RandomUniform",
            (Distribution::Uniform { .. }, None) => "RandomUniformLike",
        }
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let shape = match &self.shape {
            Some(shape) => shape.clone(),
            None => inputs.tensor(0)?.shape().to_vec(),
        };
        let data_type = match self.data_type {
            Some(data_type) => data_type,
            None => inputs.tensor(0)?.data_type(),
        };
        let count = checked_count(&shape, DataType::F64)?;
        let mut generator = Generator::new(self.seed);
        let mut draw = || match self.distribution {
            Distribution::Normal { mean, scale } => {
                f64::from(mean) + f64::from(scale) * generator.normal()
            }
            Distribution::Uniform { low, high } => {
                f64::from(low) + (f64::from(high) - f64::from(low)) * generator.uniform()
            }
        };
        let numbers = (0..count).map(|_| draw()).collect();
        Ok(vec![Tensor::from_f64s(shape, data_type, numbers)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let data_type = self.data_type.or(inputs.data_type(0));
        Ok(vec![match &self.shape {
            Some(shape) => {
                Fact::partial(data_type, Some(shape.iter().map(|&size| Some(size)).collect()))
            }
            None => shaped_like_first(inputs, data_type),
        }])
    }

    fn is_deterministic(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::standard_operator;

    fn draw(operator: &dyn Operator) -> Result<Vec<f32>, OperatorError> {
        operator.evaluate(&Inputs::new(&[], 1))?.remove(0).into_tensor()?.into_elements()
    }

    #[test]
    fn a_seed_repeats_and_its_absence_does_not() {
        let attributes =
            Attributes::new().with("shape", vec![50i64]).with("low", -2f32).with("high", -1f32);
        let unseeded = standard_operator("RandomUniform", 22, &attributes).unwrap();
        assert_ne!(draw(&*unseeded), draw(&*unseeded));
        let seeded =
            standard_operator("RandomUniform", 22, &attributes.with("seed", 7f32)).unwrap();
        let numbers = draw(&*seeded).unwrap();
        assert_eq!(draw(&*seeded).unwrap(), numbers);
        assert!(numbers.iter().all(|number| (-2.0..-1.0).contains(number)));
        assert!(!seeded.is_deterministic());
    }

    #[test]
    fn hostile_shapes_are_refused() {
        for shape in [vec![-1i64], vec![i64::MAX, 2], vec![1 << 40]] {
            let attributes = Attributes::new().with("shape", shape.clone());
            let built = standard_operator("RandomNormal", 22, &attributes);
            assert!(built.and_then(|operator| draw(&*operator)).is_err(), "{shape:?}");
        }
    }
}
