//! SequenceAt, SequenceInsert, SequenceErase and SequenceLength: sequences read and changed by place.

use std::sync::Arc;

use super::construct::same_type;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// A place among `places`, from the end where negative.
fn place(tensor: &Tensor, length: usize, places: usize) -> Result<usize, OperatorError> {
    let given = tensor.to_i64s()?;
    let [given] = *given else {
        return Err(OperatorError::ElementCount { shape: vec![], given: given.len() });
    };
    let shifted = if given < 0 { given.checked_add(length as i64) } else { Some(given) };
    shifted
        .and_then(|place| usize::try_from(place).ok())
        .filter(|&place| place < places)
        .ok_or_else(|| OperatorError::Invalid(format!("place {given} in a sequence of {length}")))
}

/// What to do to a sequence.
#[derive(Clone, Copy, Debug)]
enum SequenceAccess {
    At,
    Insert,
    Erase,
    Length,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(match source.operator {
        "SequenceAt" => SequenceAccess::At,
        "SequenceInsert" => SequenceAccess::Insert,
        "SequenceErase" => SequenceAccess::Erase,
        "SequenceLength" => SequenceAccess::Length,
        other => return Err(OperatorError::Unsupported(other.into())),
    }))
}

impl Operator for SequenceAccess {
    fn name(&self) -> &'static str {
        match self {
            Self::At => "SequenceAt",
            Self::Insert => "SequenceInsert",
            Self::Erase => "SequenceErase",
            Self::Length => "SequenceLength",
        }
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (data_type, tensors) = inputs.sequence(0)?;
        let length = tensors.len();
        let result = match self {
            Self::At => tensors[place(inputs.tensor(1)?, length, length)?].clone().into(),
            Self::Length => Tensor::scalar(length as i64).into(),
            Self::Insert => {
                let tensor = inputs.tensor(1)?;
                same_type(data_type, tensor)?;
                let place = match inputs.optional_tensor(2)? {
                    None => length,
                    Some(given) => place(given, length, length + 1)?,
                };
                let mut tensors = tensors.to_vec();
                tensors.insert(place, tensor.clone());
                Value::Sequence(data_type, tensors)
            }
            Self::Erase => {
                let place = match inputs.optional_tensor(1)? {
                    None => length.checked_sub(1).ok_or_else(|| {
                        OperatorError::Invalid("nothing to erase from an empty sequence".into())
                    })?,
                    Some(given) => place(given, length, length)?,
                };
                let mut tensors = tensors.to_vec();
                tensors.remove(place);
                Value::Sequence(data_type, tensors)
            }
        };
        Ok(vec![result])
    }

    fn infer(&self, _inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![match self {
            Self::Length => Fact::new(DataType::I64, &[]),
            _ => Fact::unknown(),
        }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_outside_are_refused() {
        let run = |access: SequenceAccess, index: i64| {
            let tensors = vec![Tensor::scalar(0f32), Tensor::scalar(1f32)];
            let sequence = Some(Value::Sequence(DataType::F32, tensors));
            let index = Some(Value::from(Tensor::scalar(index)));
            let values = match access {
                SequenceAccess::Insert => {
                    vec![sequence, Some(Tensor::scalar(9f32).into()), index]
                }
                _ => vec![sequence, index],
            };
            access.evaluate(&Inputs::new(&values, 1)).is_ok()
        };
        for (index, inside, insertable) in [
            (0, true, true),
            (-2, true, true),
            (2, false, true),
            (3, false, false),
            (-3, false, false),
        ] {
            assert_eq!(run(SequenceAccess::At, index), inside, "{index}");
            assert_eq!(run(SequenceAccess::Erase, index), inside, "{index}");
            assert_eq!(run(SequenceAccess::Insert, index), insertable, "{index}");
        }
    }
}
