//! QuantizeLinear and DequantizeLinear: numbers to quantised numbers and back, by scale and zero point.

use std::sync::Arc;

use crate::attribute::Attributes;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

use super::granularity::Granularity;
use super::number;

/// What both directions are told: how scales lie, and what type the output has.
#[derive(Clone, Debug)]
struct Scaling {
    axis: i64,
    /// Elements per scale along the axis; 0 where quantisation is not blocked.
    block_size: usize,
    output_type: Option<DataType>,
}

/// An attribute that holds a type's number, where it is given and not 0.
fn type_attribute(attributes: &Attributes, name: &str) -> Result<Option<DataType>, OperatorError> {
    match attributes.int_or(name, 0)? {
        0 => Ok(None),
        code => match DataType::from_onnx(code) {
            Some(data_type) => Ok(Some(data_type)),
            None => Err(OperatorError::Attribute {
                name: name.to_string(),
                problem: format!("{code} is not a type"),
            }),
        },
    }
}

impl Scaling {
    fn parse(attributes: &Attributes) -> Result<Self, OperatorError> {
        let block_size = attributes.int_or("block_size", 0)?;
        Ok(Self {
            axis: attributes.int_or("axis", 1)?,
            block_size: usize::try_from(block_size).map_err(|_| OperatorError::Attribute {
                name: "block_size".into(),
                problem: format!("{block_size} is negative"),
            })?,
            output_type: type_attribute(attributes, "output_dtype")?,
        })
    }

    /// The scales, the zero points (0 where there are none), and which belong to which element.
    fn read(
        &self,
        inputs: &Inputs<'_>,
    ) -> Result<(Vec<f64>, Vec<f64>, Granularity), OperatorError> {
        let (x, scale) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let granularity = Granularity::new(x.shape(), scale.shape(), self.axis, self.block_size)?;
        let zeros = match inputs.optional_tensor(2)? {
            None => vec![0.0; scale.len()],
            Some(zeros) if zeros.len() == scale.len() => number::read(zeros)?,
            Some(zeros) => {
                return Err(OperatorError::Shapes {
                    left: scale.shape().to_vec(),
                    right: zeros.shape().to_vec(),
                });
            }
        };
        Ok((number::read_any(scale)?, zeros, granularity))
    }

    /// The scaling of permuted inputs. Blocks have scales of the inputs' rank, which would have to be permuted too.
    fn permuted(&self, permutation: &[usize]) -> Option<Self> {
        if self.block_size != 0 {
            return None;
        }
        let axis = match crate::axis::normalise_axis(self.axis, permutation.len()) {
            Ok(axis) => permutation.iter().position(|&old| old == axis)? as i64,
            // Quantisation of a whole tensor ignores the axis, also one out of range.
            Err(_) => self.axis,
        };
        Some(Self { axis, ..self.clone() })
    }
}

/// `saturate(round(x / scale) + zero)`.
#[derive(Clone, Debug)]
struct QuantizeLinear {
    scaling: Scaling,
    saturate: bool,
    /// The type that is divided in; the scale's where not given.
    precision: Option<DataType>,
}

pub(super) fn build_quantise(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    Ok(Arc::new(QuantizeLinear {
        scaling: Scaling::parse(attributes)?,
        saturate: attributes.flag_or("saturate", true)?,
        precision: type_attribute(attributes, "precision")?,
    }))
}

impl QuantizeLinear {
    fn output_type(&self, zero_type: Option<DataType>) -> Result<DataType, OperatorError> {
        match (zero_type, self.scaling.output_type) {
            (Some(given), Some(expected)) if given != expected => {
                Err(OperatorError::WrongType { expected: expected.to_string(), given })
            }
            (zero, output) => Ok(zero.or(output).unwrap_or(DataType::U8)),
        }
    }
}

impl Operator for QuantizeLinear {
    fn name(&self) -> &'static str {
        "QuantizeLinear"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let (scales, zeros, granularity) = self.scaling.read(inputs)?;
        let zero_type = inputs.optional_tensor(2)?.map(Tensor::data_type);
        let data_type = self.output_type(zero_type)?;
        let precision = self.precision.unwrap_or(inputs.tensor(1)?.data_type());
        // Integers and powers of two are no type to divide in.
        let precision = match precision {
            DataType::F16 | DataType::BF16 | DataType::F64 => precision,
            _ => DataType::F32,
        };
        let round = |number| number::rounded(number, precision);
        let scales: Vec<f64> = scales.into_iter().map(round).collect();
        let elements = number::read_any(x)?;
        let numbers = elements.iter().enumerate().map(|(place, &element)| {
            let index = granularity.scale_of(place);
            (round(round(element) / scales[index]), zeros[index])
        });
        Ok(vec![number::write(x.shape().to_vec(), data_type, numbers, self.saturate)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let data_type = match inputs.fact(2) {
            Some(zero) if zero.data_type.is_none() => self.scaling.output_type,
            zero => Some(self.output_type(zero.and_then(|zero| zero.data_type))?),
        };
        Ok(vec![Fact::partial(data_type, inputs.dimensions(0).map(<[_]>::to_vec))])
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let scaling = self.scaling.permuted(permutation)?;
        Some(Arc::new(Self { scaling, ..self.clone() }))
    }
}

/// `(x - zero) * scale`.
#[derive(Clone, Debug)]
struct DequantizeLinear {
    scaling: Scaling,
}

pub(super) fn build_dequantise(
    source: &NodeSource<'_>,
) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(DequantizeLinear { scaling: Scaling::parse(source.attributes)? }))
}

impl DequantizeLinear {
    fn output_type(&self, scale_type: DataType) -> DataType {
        // Powers of two are a type for scales only.
        let scale_type = if scale_type == DataType::F8E8M0 { DataType::F32 } else { scale_type };
        self.scaling.output_type.unwrap_or(scale_type)
    }
}

impl Operator for DequantizeLinear {
    fn name(&self) -> &'static str {
        "DequantizeLinear"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let (scales, zeros, granularity) = self.scaling.read(inputs)?;
        let numbers = number::read(x)?;
        let elements = numbers.iter().enumerate().map(|(place, number)| {
            let index = granularity.scale_of(place);
            // The difference is exact; floats begin with it.
            (number - zeros[index]) as f32 * scales[index] as f32
        });
        let data_type = self.output_type(inputs.tensor(1)?.data_type());
        Ok(vec![Tensor::from_f32s(x.shape().to_vec(), data_type, elements.collect())?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let scale_type = inputs.data_type(1).map(|scale_type| self.output_type(scale_type));
        let data_type = scale_type.or(self.scaling.output_type);
        Ok(vec![Fact::partial(data_type, inputs.dimensions(0).map(<[_]>::to_vec))])
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let scaling = self.scaling.permuted(permutation)?;
        Some(Arc::new(Self { scaling }))
    }
}
