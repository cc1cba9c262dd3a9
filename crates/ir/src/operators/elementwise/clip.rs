//! Clip: elements outside two bounds become the bound.

use std::sync::Arc;

use super::inference::like_first;
use super::number::{Number, narrowed, widened, with_numbers};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, TensorData};
use crate::value::Value;

/// `min(max(x, lower), upper)`; a bound that is absent does not bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clip {
    /// The lower bound where it is an attribute (before opset 11); later it is input 1.
    pub min: Option<f32>,
    /// The upper bound where it is an attribute (before opset 11); later it is input 2.
    pub max: Option<f32>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attribute = |name| {
        if source.opset < 11 { source.attributes.float(name) } else { Ok(None) }
    };
    Ok(Arc::new(Clip { min: attribute("min")?, max: attribute("max")? }))
}

impl Clip {
    /// The bounds as `f32`, where they are attributes or `constant` knows the inputs; absent ones are infinite.
    pub fn bounds<'a>(&self, constant: impl Fn(usize) -> BoundInput<'a>) -> Option<(f32, f32)> {
        let bound = |attribute: Option<f32>, index: usize, absent: f32| match constant(index) {
            BoundInput::Absent => Some(attribute.unwrap_or(absent)),
            BoundInput::Constant(tensor) => match tensor.to_f32s().ok()?[..] {
                [only] => Some(only),
                _ => None,
            },
            BoundInput::Computed => None,
        };
        Some((bound(self.min, 1, f32::NEG_INFINITY)?, bound(self.max, 2, f32::INFINITY)?))
    }
}

/// What is known of an input that may hold a bound.
#[derive(Clone, Copy, Debug)]
pub enum BoundInput<'a> {
    /// The node does not list it.
    Absent,
    /// It is a constant.
    Constant(&'a Tensor),
    /// It is known only once the graph runs.
    Computed,
}

impl Operator for Clip {
    fn name(&self) -> &'static str {
        "Clip"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let bound = |index: usize, attribute: Option<f32>| match inputs.optional_tensor(index)? {
            Some(bound) if bound.data_type() != x.data_type() => Err(OperatorError::WrongType {
                expected: x.data_type().to_string(),
                given: bound.data_type(),
            }),
            Some(bound) => Ok(Some(bound.clone())),
            None => attribute
                .map(|bound| Tensor::from_f32s(vec![], x.data_type(), vec![bound]))
                .transpose(),
        };
        Ok(vec![clip(x, bound(1, self.min)?, bound(2, self.max)?)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![like_first(inputs)])
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(*self))
    }
}

fn clip(x: &Tensor, min: Option<Tensor>, max: Option<Tensor>) -> Result<Tensor, OperatorError> {
    fn run<T: Number>(
        x: &Tensor,
        elements: &[T],
        min: Option<Tensor>,
        max: Option<Tensor>,
    ) -> Result<Tensor, OperatorError> {
        let bound = |bound: Option<Tensor>, absent| bound.map_or(Ok(absent), |b| b.only::<T>());
        let (min, max) = (bound(min, T::LOWEST)?, bound(max, T::HIGHEST)?);
        let clipped = elements.iter().map(|x| x.greatest(min).least(max)).collect();
        Tensor::from_vec(x.shape().to_vec(), clipped)
    }
    with_numbers!(x, elements => run(x, elements, min, max), halves => match halves {
        TensorData::F16(_) | TensorData::BF16(_) => {
            let bound = |bound: Option<Tensor>| bound.as_ref().map(widened).transpose();
            narrowed(clip(&widened(x)?, bound(min)?, bound(max)?)?, x.data_type())
        }
        _ => Err(OperatorError::WrongType { expected: "a number".into(), given: x.data_type() }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::standard_operator;

    #[test]
    fn bounds_are_attributes_before_opset_11() {
        let attributes = Attributes::new().with("min", 0.0f32).with("max", 6.0f32);
        let old = standard_operator("Clip", 6, &attributes).unwrap();
        let x = [Some(Tensor::vector(vec![-1f32, 3.0, 9.0, f32::NAN]).into())];
        let y = old.evaluate(&Inputs::new(&x, 1)).unwrap().remove(0).into_tensor().unwrap();
        assert_eq!(y.elements::<f32>().unwrap()[..3], [0.0, 3.0, 6.0]);
        assert!(y.elements::<f32>().unwrap()[3].is_nan());

        let new = standard_operator("Clip", 13, &Attributes::new()).unwrap();
        let clip = new.downcast::<Clip>().unwrap();
        let six = Tensor::scalar(6f32);
        let known = clip.bounds(|index| match index {
            1 => BoundInput::Absent,
            _ => BoundInput::Constant(&six),
        });
        assert_eq!(known, Some((f32::NEG_INFINITY, 6.0)));
        assert_eq!(clip.bounds(|_| BoundInput::Computed), None);
    }

    #[test]
    fn a_bound_of_several_elements_is_refused() {
        let inputs =
            [Some(Tensor::vector(vec![1i32]).into()), Some(Tensor::vector(vec![1i32, 2]).into())];
        assert!(Clip { min: None, max: None }.evaluate(&Inputs::new(&inputs, 1)).is_err());
    }
}
