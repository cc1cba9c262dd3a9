//! BitCast: the same bits read as another type of the same width.

use std::sync::Arc;

use half::{bf16, f16};

use super::cast::data_type_attribute;
use super::inference::shaped_like_first;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Element, Tensor, TensorData};
use crate::value::Value;

/// Every element's bits, read as another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitCast {
    /// The type to read them as.
    pub to: DataType,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let to = data_type_attribute(source, "to")?.ok_or_else(|| OperatorError::Attribute {
        name: "to".into(),
        problem: "is missing".into(),
    })?;
    Ok(Arc::new(BitCast { to }))
}

impl Operator for BitCast {
    fn name(&self) -> &'static str {
        "BitCast"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let from = x.data_type();
        if from.bits() != self.to.bits() || from == DataType::String {
            return Err(OperatorError::WrongType {
                expected: format!("a type as wide as {}", self.to),
                given: from,
            });
        }
        Ok(vec![read(x.shape(), &bytes(x), self.to)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![shaped_like_first(inputs, Some(self.to))])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(*self))
    }
}

/// Each element's bytes, lowest first.
fn bytes(x: &Tensor) -> Vec<u8> {
    macro_rules! numbers {
        ($($variant:ident),*) => {
            match x.data() {
                $(TensorData::$variant(elements) => elements.iter().flat_map(|x| x.to_le_bytes()).collect(),)*
                TensorData::Bool(elements) => elements.iter().map(|&x| u8::from(x)).collect(),
                TensorData::Complex64(elements) => {
                    elements.as_flattened().iter().flat_map(|x| x.to_le_bytes()).collect()
                }
                TensorData::Complex128(elements) => {
                    elements.as_flattened().iter().flat_map(|x| x.to_le_bytes()).collect()
                }
                TensorData::Narrow(_, codes) => codes.to_vec(),
                TensorData::String(_) => Vec::new(),
            }
        };
    }
    numbers!(F32, F64, F16, BF16, I8, I16, I32, I64, U8, U16, U32, U64)
}

fn read(shape: &[usize], bytes: &[u8], to: DataType) -> Result<Tensor, OperatorError> {
    fn elements<T: Element, const N: usize>(
        shape: &[usize],
        bytes: &[u8],
        read: impl Fn([u8; N]) -> T,
    ) -> Result<Tensor, OperatorError> {
        let (chunks, _) = bytes.as_chunks::<N>();
        Tensor::from_vec(shape.to_vec(), chunks.iter().map(|&chunk| read(chunk)).collect())
    }
    fn pair<const N: usize, const HALF: usize>(bytes: [u8; N]) -> [[u8; HALF]; 2] {
        let (halves, _) = bytes.as_chunks::<HALF>();
        [halves[0], halves[1]]
    }
    match to {
        DataType::F32 => elements(shape, bytes, f32::from_le_bytes),
        DataType::F64 => elements(shape, bytes, f64::from_le_bytes),
        DataType::F16 => elements(shape, bytes, f16::from_le_bytes),
        DataType::BF16 => elements(shape, bytes, bf16::from_le_bytes),
        DataType::I8 => elements(shape, bytes, i8::from_le_bytes),
        DataType::I16 => elements(shape, bytes, i16::from_le_bytes),
        DataType::I32 => elements(shape, bytes, i32::from_le_bytes),
        DataType::I64 => elements(shape, bytes, i64::from_le_bytes),
        DataType::U8 => elements(shape, bytes, u8::from_le_bytes),
        DataType::U16 => elements(shape, bytes, u16::from_le_bytes),
        DataType::U32 => elements(shape, bytes, u32::from_le_bytes),
        DataType::U64 => elements(shape, bytes, u64::from_le_bytes),
        DataType::Bool => elements(shape, bytes, |[byte]: [u8; 1]| byte != 0),
        DataType::Complex64 => {
            elements(shape, bytes, |x: [u8; 8]| pair::<8, 4>(x).map(f32::from_le_bytes))
        }
        DataType::Complex128 => {
            elements(shape, bytes, |x: [u8; 16]| pair::<16, 8>(x).map(f64::from_le_bytes))
        }
        DataType::String => Err(OperatorError::Unsupported("BitCast to strings".into())),
        narrow => {
            // Codes of signed integers are sign-extended, all others are not.
            let spare = 8 - narrow.bits() as u32;
            let code = |byte: u8| match narrow {
                DataType::I4 | DataType::I2 => ((byte << spare) as i8 >> spare) as u8,
                _ => byte << spare >> spare,
            };
            let codes: Vec<u8> = bytes.iter().map(|&byte| code(byte)).collect();
            Tensor::new(shape.to_vec(), TensorData::Narrow(narrow, codes.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(x: Tensor, to: DataType) -> Result<Tensor, OperatorError> {
        let outputs = BitCast { to }.evaluate(&Inputs::new(&[Some(x.into())], 1))?;
        outputs[0].clone().into_tensor()
    }

    #[test]
    fn narrow_codes_keep_their_bits() {
        let unsigned =
            Tensor::new(vec![2], TensorData::Narrow(DataType::U4, vec![0xF, 0x7].into())).unwrap();
        let signed = cast(unsigned.clone(), DataType::I4).unwrap();
        assert_eq!(signed.data(), &TensorData::Narrow(DataType::I4, vec![0xFF, 0x7].into()));
        assert_eq!(cast(signed, DataType::U4).unwrap(), unsigned);
    }

    #[test]
    fn widths_must_agree() {
        assert!(cast(Tensor::scalar(1f32), DataType::I64).is_err());
        assert!(cast(Tensor::scalar(String::new()), DataType::String).is_err());
        let complex = cast(Tensor::scalar(2f64), DataType::Complex64).unwrap();
        assert_eq!(cast(complex, DataType::F64).unwrap().only::<f64>(), Ok(2.0));
    }
}
