//! Not and BitwiseNot: every truth value, or every bit, inverted.

use std::sync::Arc;

use super::inference::like_first;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, TensorData};
use crate::value::Value;

/// Logical negation of bools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Not;

/// Bitwise complement of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitwiseNot;

pub(super) fn build(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Not))
}

pub(super) fn build_bitwise(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(BitwiseNot))
}

impl Operator for Not {
    fn name(&self) -> &'static str {
        "Not"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let inverted = x.elements::<bool>()?.iter().map(|x| !x).collect();
        Ok(vec![Tensor::from_vec(x.shape().to_vec(), inverted)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![like_first(inputs)])
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(*self))
    }
}

impl Operator for BitwiseNot {
    fn name(&self) -> &'static str {
        "BitwiseNot"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        macro_rules! invert {
            ($($variant:ident),*) => {
                match x.data() {
                    $(TensorData::$variant(elements) => TensorData::$variant(
                        elements.iter().map(|x| !x).collect::<Vec<_>>().into()),)*
                    _ => return Err(OperatorError::WrongType {
                        expected: "an integer".into(),
                        given: x.data_type(),
                    }),
                }
            };
        }
        let inverted = invert!(I8, I16, I32, I64, U8, U16, U32, U64);
        Ok(vec![Tensor::new(x.shape().to_vec(), inverted)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![like_first(inputs)])
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(*self))
    }
}
