//! Range: numbers from a start to a limit in equal steps.

use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// `start + i * step` for as many `i` as stay before the limit.
#[derive(Clone, Debug)]
struct Range;

pub(super) fn build(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Range))
}

/// A scalar as a number of its own kind.
#[derive(Clone, Copy, Debug)]
enum Number {
    Integer(i64),
    Float(f64),
}

fn number(tensor: &Tensor) -> Result<Number, OperatorError> {
    let wrong = || OperatorError::ElementCount { shape: vec![], given: tensor.len() };
    if tensor.data_type().is_integer() {
        let integers = tensor.to_i64s()?;
        return integers.first().copied().map(Number::Integer).ok_or_else(wrong);
    }
    tensor.to_f64s()?.first().copied().map(Number::Float).ok_or_else(wrong)
}

fn count(bounds: [Number; 3], data_type: DataType) -> Result<usize, OperatorError> {
    let endless = || OperatorError::Invalid(format!("a range over {bounds:?} does not end"));
    let count = match bounds {
        [Number::Integer(start), Number::Integer(limit), Number::Integer(step)] => {
            if step == 0 {
                return Err(endless());
            }
            let (distance, step) = (i128::from(limit) - i128::from(start), i128::from(step));
            let (distance, step) = if step < 0 { (-distance, -step) } else { (distance, step) };
            usize::try_from((distance.max(0) + step - 1) / step).map_err(|_| endless())?
        }
        [Number::Float(start), Number::Float(limit), Number::Float(step)] => {
            let count = ((limit - start) / step).ceil();
            if !count.is_finite() {
                return Err(endless());
            }
            count.max(0.0) as usize
        }
        _ => return Err(OperatorError::Invalid("a range over numbers of different types".into())),
    };
    checked_count(&[count], data_type)
}

impl Operator for Range {
    fn name(&self) -> &'static str {
        "Range"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let tensors = [inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?];
        let data_type = tensors[0].data_type();
        let bounds = [number(tensors[0])?, number(tensors[1])?, number(tensors[2])?];
        let count = count(bounds, data_type)?;
        let [start, _, step] = bounds;
        let shape = vec![count];
        let (Number::Integer(start), Number::Integer(step)) = (start, step) else {
            let (Number::Float(start), Number::Float(step)) = (start, step) else {
                return Err(OperatorError::Invalid("a range over different types".into()));
            };
            let range = match data_type {
                DataType::F64 => {
                    let numbers = (0..count).map(|index| start + index as f64 * step).collect();
                    Tensor::from_f64s(shape, data_type, numbers)?
                }
                _ => {
                    let (start, step) = (start as f32, step as f32);
                    let numbers = (0..count).map(|index| start + index as f32 * step).collect();
                    Tensor::from_f32s(shape, data_type, numbers)?
                }
            };
            return Ok(vec![range.into()]);
        };
        let numbers = (0..count).map(|index| start.wrapping_add((index as i64).wrapping_mul(step)));
        let range = match data_type {
            DataType::I64 => Tensor::from_vec(shape, numbers.collect::<Vec<i64>>())?,
            DataType::I32 => Tensor::from_vec(shape, numbers.map(|n| n as i32).collect())?,
            DataType::I16 => Tensor::from_vec(shape, numbers.map(|n| n as i16).collect())?,
            given => {
                let expected = "a float or a signed integer of 16 bits and more".into();
                return Err(OperatorError::WrongType { expected, given });
            }
        };
        Ok(vec![range.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let constants = [inputs.constant(0), inputs.constant(1), inputs.constant(2)];
        let count = match constants {
            [Some(start), Some(limit), Some(step)] => {
                let bounds = [number(start)?, number(limit)?, number(step)?];
                Some(count(bounds, start.data_type())?)
            }
            _ => None,
        };
        Ok(vec![Fact::partial(inputs.data_type(0), Some(vec![count]))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_round_up_and_never_run_away() {
        use Number::{Float, Integer};
        let cases = [
            ([Integer(3), Integer(9), Integer(4)], Some(2)),
            ([Integer(10), Integer(4), Integer(-2)], Some(3)),
            ([Integer(4), Integer(10), Integer(-2)], Some(0)),
            ([Float(0.0), Float(1.0), Float(0.3)], Some(4)),
            ([Integer(0), Integer(4), Integer(0)], None),
            ([Float(0.0), Float(1.0), Float(0.0)], None),
            ([Float(0.0), Float(f64::NAN), Float(1.0)], None),
            ([Float(0.0), Float(1e30), Float(1.0)], None),
            ([Integer(i64::MIN), Integer(i64::MAX), Integer(1)], None),
        ];
        for (bounds, expected) in cases {
            assert_eq!(count(bounds, DataType::F32).ok(), expected, "{bounds:?}");
        }
    }
}
