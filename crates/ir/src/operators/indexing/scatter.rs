//! Scattering: updates written over, or combined with, chosen elements of a tensor.

use half::{bf16, f16};

use crate::attribute::Attributes;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::tensor::{Element, Tensor};

/// What becomes of an element that an update falls on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::operators) enum Combination {
    /// The update takes its place.
    Replace,
    Add,
    Multiply,
    Maximum,
    Minimum,
}

impl Combination {
    /// The combination that the attribute `reduction` names.
    pub(super) fn from_attributes(attributes: &Attributes) -> Result<Self, OperatorError> {
        match attributes.string_or("reduction", "none")? {
            "none" => Ok(Self::Replace),
            "add" => Ok(Self::Add),
            "mul" => Ok(Self::Multiply),
            "max" => Ok(Self::Maximum),
            "min" => Ok(Self::Minimum),
            other => Err(OperatorError::Attribute {
                name: "reduction".into(),
                problem: format!("'{other}' is none of none, add, mul, max and min"),
            }),
        }
    }
}

/// `data` after update `i` has fallen on element `targets[i]`, in order.
pub(in crate::operators) fn scatter(
    data: &Tensor,
    targets: &[usize],
    updates: &Tensor,
    combination: Combination,
) -> Result<Tensor, OperatorError> {
    if updates.len() != targets.len() {
        let shape = updates.shape().to_vec();
        return Err(OperatorError::ElementCount { shape, given: targets.len() });
    }
    let count = data.len();
    if let Some(target) = targets.iter().find(|&&target| target >= count) {
        let problem = format!("target {target} is past the end of {count} elements");
        return Err(OperatorError::Invalid(problem));
    }
    if combination == Combination::Replace {
        let mut sources: Vec<usize> = (0..count).collect();
        for (update, &target) in targets.iter().enumerate() {
            sources[target] = count + update;
        }
        return Tensor::chained(&[data, updates])?.gathered(data.shape().to_vec(), &sources);
    }
    macro_rules! dispatch {
        ($($variant:ident => $rust:ty),*) => {
            match data.data_type() {
                $(DataType::$variant => combine::<$rust>(data, targets, updates, combination),)*
                given => Err(OperatorError::WrongType { expected: "a number".into(), given }),
            }
        };
    }
    dispatch!(
        F32 => f32, F64 => f64, F16 => f16, BF16 => bf16, I8 => i8, I16 => i16, I32 => i32,
        I64 => i64, U8 => u8, U16 => u16, U32 => u32, U64 => u64, Bool => bool
    )
}

fn combine<T: Combine>(
    data: &Tensor,
    targets: &[usize],
    updates: &Tensor,
    combination: Combination,
) -> Result<Tensor, OperatorError> {
    let mut elements = data.elements::<T>()?.to_vec();
    for (&target, update) in targets.iter().zip(updates.elements::<T>()?) {
        elements[target] = elements[target].combined(update, combination);
    }
    Tensor::from_vec(data.shape().to_vec(), elements)
}

trait Combine: Element {
    fn combined(&self, update: &Self, combination: Combination) -> Self;
}

macro_rules! combine_integers {
    ($($rust:ty),*) => {$(
        impl Combine for $rust {
            fn combined(&self, update: &Self, combination: Combination) -> Self {
                match combination {
                    Combination::Replace => *update,
                    Combination::Add => self.wrapping_add(*update),
                    Combination::Multiply => self.wrapping_mul(*update),
                    Combination::Maximum => *self.max(update),
                    Combination::Minimum => *self.min(update),
                }
            }
        }
    )*};
}
combine_integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! combine_floats {
    ($($rust:ty),*) => {$(
        impl Combine for $rust {
            fn combined(&self, update: &Self, combination: Combination) -> Self {
                match combination {
                    Combination::Replace => *update,
                    Combination::Add => *self + *update,
                    Combination::Multiply => *self * *update,
                    // A NaN on either side stays.
                    Combination::Maximum if self.is_nan() || *self > *update => *self,
                    Combination::Minimum if self.is_nan() || *self < *update => *self,
                    Combination::Maximum | Combination::Minimum => *update,
                }
            }
        }
    )*};
}
combine_floats!(f32, f64, f16, bf16);

impl Combine for bool {
    fn combined(&self, update: &Self, combination: Combination) -> Self {
        match combination {
            Combination::Replace => *update,
            Combination::Add | Combination::Maximum => *self | *update,
            Combination::Multiply | Combination::Minimum => *self & *update,
        }
    }
}
