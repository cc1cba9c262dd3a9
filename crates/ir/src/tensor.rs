//! Tensors: a shape and its elements, immutable and cheaply cloned.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytemuck::Pod;
use bytes::Bytes;
use half::{bf16, f16};

use crate::array::Array;
use crate::data_type::DataType;
use crate::error::OperatorError;

/// The most bytes that a computed tensor may take; a model that asks for more is refused.
pub const MAX_TENSOR_BYTES: usize = 2 << 30;

/// The most elements that an empty tensor may have room for beside its dimensions of zero: operators take time and
/// memory for each of them.
const MAX_EMPTY_COUNT: usize = 1 << 28;

/// The elements of a tensor.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum TensorData {
    F32(Array<f32>),
    F64(Array<f64>),
    F16(Array<f16>),
    BF16(Array<bf16>),
    I8(Array<i8>),
    I16(Array<i16>),
    I32(Array<i32>),
    I64(Array<i64>),
    U8(Array<u8>),
    U16(Array<u16>),
    U32(Array<u32>),
    U64(Array<u64>),
    Bool(Array<bool>),
    String(Array<String>),
    /// Real and imaginary part.
    Complex64(Array<[f32; 2]>),
    /// Real and imaginary part.
    Complex128(Array<[f64; 2]>),
    /// Types of at most 8 bits that Rust has no type for, one code per byte in the low bits;
    /// signed integers are sign-extended.
    Narrow(DataType, Array<u8>),
}

/// A Rust type that is a tensor element.
pub trait Element: Clone + Send + Sync + PartialEq + Default + fmt::Debug + 'static {
    /// The tensor type whose elements are `Self`.
    const DATA_TYPE: DataType;
    /// Wraps elements.
    fn into_data(elements: Array<Self>) -> TensorData;
    /// The elements, where they are of this type.
    fn from_data(data: &TensorData) -> Option<&Array<Self>>;
}

macro_rules! elements {
    ($($rust:ty => $variant:ident),* $(,)?) => {$(
        impl Element for $rust {
            const DATA_TYPE: DataType = DataType::$variant;
            fn into_data(elements: Array<Self>) -> TensorData {
                TensorData::$variant(elements)
            }
            fn from_data(data: &TensorData) -> Option<&Array<Self>> {
                match data {
                    TensorData::$variant(elements) => Some(elements),
                    _ => None,
                }
            }
        }
    )*};
}

elements! {
    f32 => F32, f64 => F64, f16 => F16, bf16 => BF16,
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    bool => Bool, String => String, [f32; 2] => Complex64, [f64; 2] => Complex128,
}

/// Runs `$body` with `$elements` bound to the tensor's elements as a slice, whatever their type.
#[macro_export]
macro_rules! with_elements {
    ($tensor:expr, $elements:ident => $body:expr) => {
        match $tensor.data() {
            $crate::TensorData::F32($elements) => $body,
            $crate::TensorData::F64($elements) => $body,
            $crate::TensorData::F16($elements) => $body,
            $crate::TensorData::BF16($elements) => $body,
            $crate::TensorData::I8($elements) => $body,
            $crate::TensorData::I16($elements) => $body,
            $crate::TensorData::I32($elements) => $body,
            $crate::TensorData::I64($elements) => $body,
            $crate::TensorData::U8($elements) => $body,
            $crate::TensorData::U16($elements) => $body,
            $crate::TensorData::U32($elements) => $body,
            $crate::TensorData::U64($elements) => $body,
            $crate::TensorData::Bool($elements) => $body,
            $crate::TensorData::String($elements) => $body,
            $crate::TensorData::Complex64($elements) => $body,
            $crate::TensorData::Complex128($elements) => $body,
            $crate::TensorData::Narrow(_, $elements) => $body,
        }
    };
}

/// A shape and as many elements as it has room for, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    data: TensorData,
}

/// The number of elements of a shape, or `None` where that overflows.
pub fn element_count(shape: &[usize]) -> Option<usize> {
    // A zero anywhere empties the tensor, so it must win over an overflow elsewhere.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |count, &dimension| count.checked_mul(dimension))
}

/// The number of elements of a shape, refused where a tensor of it would exceed [`MAX_TENSOR_BYTES`].
pub fn checked_count(shape: &[usize], data_type: DataType) -> Result<usize, OperatorError> {
    element_count(shape)
        .filter(|count| {
            count.checked_mul(data_type.size_bytes()).is_some_and(|bytes| bytes <= MAX_TENSOR_BYTES)
        })
        .ok_or_else(|| OperatorError::TooLarge { shape: shape.to_vec(), data_type })
}

/// Row-major strides, in elements, of a shape.
pub fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
    }
    strides
}

impl Tensor {
    /// A tensor over elements of whatever type; their number must fit the shape.
    pub fn new(shape: Vec<usize>, data: TensorData) -> Result<Self, OperatorError> {
        let tensor = Self { shape, data };
        let given = tensor.len();
        let mut dimensions = tensor.shape.iter().filter(|&&dimension| dimension != 0);
        let beside_zeros = dimensions.try_fold(1usize, |product, &d| product.checked_mul(d));
        let limit = if given == 0 { MAX_EMPTY_COUNT } else { usize::MAX };
        let bounded = beside_zeros.is_some_and(|count| count <= limit);
        if bounded && element_count(&tensor.shape) == Some(given) {
            Ok(tensor)
        } else {
            Err(OperatorError::ElementCount { shape: tensor.shape, given })
        }
    }

    /// A tensor over a vector; its length must fit the shape.
    pub fn from_vec<T: Element>(
        shape: Vec<usize>,
        elements: Vec<T>,
    ) -> Result<Self, OperatorError> {
        Self::new(shape, T::into_data(elements.into()))
    }

    /// A tensor that views `bytes` in place where they are aligned, and copies them once they are read where not.
    pub fn from_bytes<T: Element + Pod>(
        shape: Vec<usize>,
        bytes: Bytes,
    ) -> Result<Self, OperatorError> {
        let given = bytes.len() / size_of::<T>();
        if element_count(&shape) != Some(given) || !bytes.len().is_multiple_of(size_of::<T>()) {
            return Err(OperatorError::ElementCount { shape, given });
        }
        let elements = Array::from_bytes(bytes)
            .ok_or_else(|| OperatorError::ElementCount { shape: shape.clone(), given })?;
        Self::new(shape, T::into_data(elements))
    }

    /// A tensor of rank 0.
    pub fn scalar<T: Element>(element: T) -> Self {
        Self { shape: Vec::new(), data: T::into_data(vec![element].into()) }
    }

    /// A tensor of rank 1.
    pub fn vector<T: Element>(elements: Vec<T>) -> Self {
        Self { shape: vec![elements.len()], data: T::into_data(elements.into()) }
    }

    /// A tensor with every element equal; refused past [`MAX_TENSOR_BYTES`].
    pub fn filled<T: Element>(shape: Vec<usize>, element: T) -> Result<Self, OperatorError> {
        let count = checked_count(&shape, T::DATA_TYPE)?;
        Self::from_vec(shape, vec![element; count])
    }

    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        with_elements!(self, elements => elements.len())
    }

    /// True where the tensor has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the elements take in memory.
    pub fn size_bytes(&self) -> usize {
        self.len() * self.data_type().size_bytes()
    }

    /// The elements.
    pub fn data(&self) -> &TensorData {
        &self.data
    }

    /// The element type.
    pub fn data_type(&self) -> DataType {
        match &self.data {
            TensorData::F32(_) => DataType::F32,
            TensorData::F64(_) => DataType::F64,
            TensorData::F16(_) => DataType::F16,
            TensorData::BF16(_) => DataType::BF16,
            TensorData::I8(_) => DataType::I8,
            TensorData::I16(_) => DataType::I16,
            TensorData::I32(_) => DataType::I32,
            TensorData::I64(_) => DataType::I64,
            TensorData::U8(_) => DataType::U8,
            TensorData::U16(_) => DataType::U16,
            TensorData::U32(_) => DataType::U32,
            TensorData::U64(_) => DataType::U64,
            TensorData::Bool(_) => DataType::Bool,
            TensorData::String(_) => DataType::String,
            TensorData::Complex64(_) => DataType::Complex64,
            TensorData::Complex128(_) => DataType::Complex128,
            TensorData::Narrow(data_type, _) => *data_type,
        }
    }

    /// The elements as a slice; an error that names both types where they differ.
    pub fn elements<T: Element>(&self) -> Result<&[T], OperatorError> {
        T::from_data(&self.data).map(|array| &**array).ok_or_else(|| OperatorError::WrongType {
            expected: T::DATA_TYPE.to_string(),
            given: self.data_type(),
        })
    }

    /// The elements as a vector of one's own; copies only where others share them.
    pub fn into_elements<T: Element>(self) -> Result<Vec<T>, OperatorError> {
        let given = self.data_type();
        let array = T::from_data(&self.data).cloned().ok_or_else(|| OperatorError::WrongType {
            expected: T::DATA_TYPE.to_string(),
            given,
        })?;
        drop(self);
        Ok(array.into_vec())
    }

    /// The same elements in another shape of as many elements.
    pub fn reshaped(&self, shape: Vec<usize>) -> Result<Self, OperatorError> {
        Self::new(shape, self.data.clone())
    }

    /// The only element, where there is just one.
    pub fn only<T: Element>(&self) -> Result<T, OperatorError> {
        match self.elements::<T>()? {
            [element] => Ok(element.clone()),
            other => Err(OperatorError::ElementCount { shape: vec![], given: other.len() }),
        }
    }

    /// Integers of any width as `i64`: how shapes, axes and indices are read.
    pub fn to_i64s(&self) -> Result<Cow<'_, [i64]>, OperatorError> {
        Ok(match &self.data {
            TensorData::I64(elements) => Cow::Borrowed(elements),
            TensorData::I32(elements) => elements.iter().map(|&e| e.into()).collect(),
            TensorData::I16(elements) => elements.iter().map(|&e| e.into()).collect(),
            TensorData::I8(elements) => elements.iter().map(|&e| e.into()).collect(),
            TensorData::U64(elements) => elements.iter().map(|&e| e as i64).collect(),
            TensorData::U32(elements) => elements.iter().map(|&e| e.into()).collect(),
            TensorData::U16(elements) => elements.iter().map(|&e| e.into()).collect(),
            TensorData::U8(elements) => elements.iter().map(|&e| e.into()).collect(),
            _ => {
                return Err(OperatorError::WrongType {
                    expected: "an integer".into(),
                    given: self.data_type(),
                });
            }
        })
    }

    /// Floats of 16 bits and more as `f32`: how operators that compute in `f32` read their inputs.
    pub fn to_f32s(&self) -> Result<Cow<'_, [f32]>, OperatorError> {
        Ok(match &self.data {
            TensorData::F32(elements) => Cow::Borrowed(elements),
            TensorData::F64(elements) => elements.iter().map(|&e| e as f32).collect(),
            TensorData::F16(elements) => elements.iter().map(|e| e.to_f32()).collect(),
            TensorData::BF16(elements) => elements.iter().map(|e| e.to_f32()).collect(),
            _ => {
                return Err(OperatorError::WrongType {
                    expected: "a float".into(),
                    given: self.data_type(),
                });
            }
        })
    }

    /// Floats of 16 bits and more as `f64`.
    pub fn to_f64s(&self) -> Result<Vec<f64>, OperatorError> {
        Ok(match &self.data {
            TensorData::F64(elements) => elements.to_vec(),
            _ => self.to_f32s()?.iter().map(|&e| e.into()).collect(),
        })
    }

    /// A float tensor of type `data_type` from `f32` elements: the counterpart of [`Tensor::to_f32s`].
    pub fn from_f32s(
        shape: Vec<usize>,
        data_type: DataType,
        elements: Vec<f32>,
    ) -> Result<Self, OperatorError> {
        match data_type {
            DataType::F32 => Self::from_vec(shape, elements),
            DataType::F64 => Self::from_vec(shape, elements.into_iter().map(f64::from).collect()),
            DataType::F16 => {
                Self::from_vec(shape, elements.into_iter().map(f16::from_f32).collect())
            }
            DataType::BF16 => {
                Self::from_vec(shape, elements.into_iter().map(bf16::from_f32).collect())
            }
            given => Err(OperatorError::WrongType { expected: "a float".into(), given }),
        }
    }

    /// A float tensor of type `data_type` from `f64` elements: the counterpart of [`Tensor::to_f64s`].
    pub fn from_f64s(
        shape: Vec<usize>,
        data_type: DataType,
        elements: Vec<f64>,
    ) -> Result<Self, OperatorError> {
        match data_type {
            DataType::F64 => Self::from_vec(shape, elements),
            DataType::F16 => {
                Self::from_vec(shape, elements.into_iter().map(f16::from_f64).collect())
            }
            DataType::BF16 => {
                Self::from_vec(shape, elements.into_iter().map(bf16::from_f64).collect())
            }
            _ => {
                Self::from_f32s(shape, data_type, elements.into_iter().map(|e| e as f32).collect())
            }
        }
    }

    /// The tensor of the given shape whose element `i` is this one's element `indices[i]`.
    ///
    /// Operators that only move elements are written with this, once for all types.
    pub fn gathered(&self, shape: Vec<usize>, indices: &[usize]) -> Result<Self, OperatorError> {
        let len = self.len();
        if let Some(&index) = indices.iter().find(|&&index| index >= len) {
            return Err(OperatorError::Invalid(format!(
                "index {index} is past the end of {len} elements"
            )));
        }
        macro_rules! pick {
            ($($variant:ident),*) => {
                match &self.data {
                    $(TensorData::$variant(elements) => {
                        TensorData::$variant(indices.iter().map(|&i| elements[i].clone()).collect::<Vec<_>>().into())
                    })*
                    TensorData::Narrow(data_type, elements) => {
                        TensorData::Narrow(*data_type, indices.iter().map(|&i| elements[i]).collect::<Vec<_>>().into())
                    }
                }
            };
        }
        let data = pick!(
            F32, F64, F16, BF16, I8, I16, I32, I64, U8, U16, U32, U64, Bool, String, Complex64,
            Complex128
        );
        Self::new(shape, data)
    }

    /// Consecutive entries of the first axis; an error where there are not so many.
    pub fn entries(&self, range: Range<usize>) -> Result<Self, OperatorError> {
        let all = self.shape.first().copied().unwrap_or(0);
        if range.start > range.end || range.end > all {
            return Err(OperatorError::Invalid(format!(
                "entries {range:?} of a tensor that has {all}"
            )));
        }
        let each = self.len() / all.max(1);
        let elements = range.start * each..range.end * each;
        macro_rules! cut {
            ($($variant:ident),*) => {
                match &self.data {
                    $(TensorData::$variant(all) => TensorData::$variant(all[elements].to_vec().into()),)*
                    TensorData::Narrow(data_type, all) => {
                        TensorData::Narrow(*data_type, all[elements].to_vec().into())
                    }
                }
            };
        }
        let data = cut!(
            F32, F64, F16, BF16, I8, I16, I32, I64, U8, U16, U32, U64, Bool, String, Complex64,
            Complex128
        );
        let mut shape = self.shape.to_vec();
        shape[0] = range.len();
        Self::new(shape, data)
    }

    /// Several tensors of one type as one flat tensor, in order.
    pub fn chained(tensors: &[&Tensor]) -> Result<Self, OperatorError> {
        let Some((first, rest)) = tensors.split_first() else {
            return Err(OperatorError::Invalid("nothing to chain".into()));
        };
        let data_type = first.data_type();
        if let Some(other) = rest.iter().find(|other| other.data_type() != data_type) {
            return Err(OperatorError::WrongType {
                expected: data_type.to_string(),
                given: other.data_type(),
            });
        }
        let count = tensors.iter().map(|tensor| tensor.len()).sum();
        checked_count(&[count], data_type)?;
        macro_rules! chain {
            ($($variant:ident),*) => {
                match &first.data {
                    $(TensorData::$variant(_) => {
                        let mut all = Vec::with_capacity(count);
                        for tensor in tensors {
                            if let TensorData::$variant(elements) = &tensor.data {
                                all.extend_from_slice(elements);
                            }
                        }
                        TensorData::$variant(all.into())
                    })*
                    TensorData::Narrow(data_type, _) => {
                        let mut all = Vec::with_capacity(count);
                        for tensor in tensors {
                            if let TensorData::Narrow(_, elements) = &tensor.data {
                                all.extend_from_slice(elements);
                            }
                        }
                        TensorData::Narrow(*data_type, all.into())
                    }
                }
            };
        }
        let data = chain!(
            F32, F64, F16, BF16, I8, I16, I32, I64, U8, U16, U32, U64, Bool, String, Complex64,
            Complex128
        );
        Self::new(vec![count], data)
    }

    /// The bytes that the elements are read from, where they are not owned: a part of a model file.
    pub fn source_bytes(&self) -> Option<&Bytes> {
        with_elements!(self, elements => elements.source_bytes())
    }

    /// True where reading the elements copies them out of [`Tensor::source_bytes`].
    pub fn is_copied_when_read(&self) -> bool {
        with_elements!(self, elements => elements.is_copied_when_read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_must_fit_its_elements() {
        assert!(Tensor::from_vec(vec![2, 3], vec![0f32; 6]).is_ok());
        assert!(Tensor::from_vec(vec![2, 3], vec![0f32; 5]).is_err());
        assert!(Tensor::from_vec(vec![usize::MAX, 2], vec![0f32; 0]).is_err());
        assert!(Tensor::from_vec(vec![1 << 28, 0], vec![0f32; 0]).is_ok());
        assert!(Tensor::from_vec(vec![1 << 29, 0], vec![0f32; 0]).is_err());
        assert!(Tensor::from_vec(vec![usize::MAX, 2, 0], vec![0f32; 0]).is_err());
    }

    #[test]
    fn a_huge_shape_is_refused_before_it_is_allocated() {
        for shape in [vec![1 << 40], vec![1 << 40, 1 << 40], vec![MAX_TENSOR_BYTES / 4 + 1]] {
            assert!(matches!(Tensor::filled(shape, 0f32), Err(OperatorError::TooLarge { .. })));
        }
    }

    #[test]
    fn gathering_keeps_the_type_and_checks_bounds() {
        let tensor = Tensor::vector(vec!["a".to_string(), "b".to_string()]);
        let swapped = tensor.gathered(vec![2], &[1, 0]).unwrap();
        assert_eq!(swapped.elements::<String>().unwrap(), &["b", "a"]);
        assert!(tensor.gathered(vec![1], &[2]).is_err());
    }

    #[test]
    fn entries_are_those_of_the_first_axis() {
        let tensor = Tensor::from_vec(vec![3, 2], vec![0i64, 1, 2, 3, 4, 5]).unwrap();
        let last = tensor.entries(1..3).unwrap();
        assert_eq!(
            (last.shape(), last.elements::<i64>().unwrap()),
            (&[2, 2][..], &[2, 3, 4, 5][..])
        );
        assert_eq!(tensor.entries(3..3).unwrap().shape(), [0, 2]);
        assert!(tensor.entries(2..4).is_err());
        assert!(Tensor::scalar(1f32).entries(0..1).is_err());
    }
}
