//! EyeLike: ones on a diagonal, zeros elsewhere.

use std::sync::Arc;

use half::{bf16, f16};

use super::selection::zero;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// A matrix of the input's shape with ones on one diagonal.
#[derive(Clone, Debug)]
struct EyeLike {
    /// The input's type where not given.
    data_type: Option<DataType>,
    /// How far right of the main diagonal.
    diagonal: i64,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let data_type = match source.attributes.int("dtype")? {
        None => None,
        Some(code) => Some(DataType::from_onnx(code).ok_or_else(|| OperatorError::Attribute {
            name: "dtype".into(),
            problem: format!("{code} is no element type"),
        })?),
    };
    Ok(Arc::new(EyeLike { data_type, diagonal: source.attributes.int_or("k", 0)? }))
}

fn one(data_type: DataType) -> Result<Tensor, OperatorError> {
    Ok(match data_type {
        DataType::F32 => Tensor::scalar(1f32),
        DataType::F64 => Tensor::scalar(1f64),
        DataType::F16 => Tensor::scalar(f16::ONE),
        DataType::BF16 => Tensor::scalar(bf16::ONE),
        DataType::I8 => Tensor::scalar(1i8),
        DataType::I16 => Tensor::scalar(1i16),
        DataType::I32 => Tensor::scalar(1i32),
        DataType::I64 => Tensor::scalar(1i64),
        DataType::U8 => Tensor::scalar(1u8),
        DataType::U16 => Tensor::scalar(1u16),
        DataType::U32 => Tensor::scalar(1u32),
        DataType::U64 => Tensor::scalar(1u64),
        DataType::Bool => Tensor::scalar(true),
        given => return Err(OperatorError::WrongType { expected: "a number".into(), given }),
    })
}

impl Operator for EyeLike {
    fn name(&self) -> &'static str {
        "EyeLike"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let &[rows, columns] = x.shape() else {
            return Err(OperatorError::Invalid(format!("a matrix, not shape {:?}", x.shape())));
        };
        let data_type = self.data_type.unwrap_or(x.data_type());
        let count = checked_count(x.shape(), data_type)?;
        let mut elements = vec![0; count];
        if count > 0 {
            for row in 0..rows {
                let column = (row as i64).checked_add(self.diagonal);
                if let Some(column) = column.and_then(|column| usize::try_from(column).ok())
                    && column < columns
                {
                    elements[row * columns + column] = 1;
                }
            }
        }
        let values = Tensor::chained(&[&zero(data_type), &one(data_type)?])?;
        Ok(vec![values.gathered(x.shape().to_vec(), &elements)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(self.data_type.or(inputs.data_type(0)), dimensions)])
    }
}
