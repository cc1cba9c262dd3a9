//! The element types a tensor can have, numbered as the ONNX standard numbers them.

use std::fmt;

/// The type of one tensor element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum DataType {
    F32,
    F64,
    F16,
    BF16,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Bool,
    String,
    Complex64,
    Complex128,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0,
    F4E2M1,
    I4,
    U4,
    I2,
    U2,
}

/// Type, number in the ONNX standard, name in ONNX's spelling, bits of one element in a file.
const TABLE: &[(DataType, i32, &str, usize)] = &[
    (DataType::F32, 1, "float32", 32),
    (DataType::U8, 2, "uint8", 8),
    (DataType::I8, 3, "int8", 8),
    (DataType::U16, 4, "uint16", 16),
    (DataType::I16, 5, "int16", 16),
    (DataType::I32, 6, "int32", 32),
    (DataType::I64, 7, "int64", 64),
    (DataType::String, 8, "string", 0),
    (DataType::Bool, 9, "bool", 8),
    (DataType::F16, 10, "float16", 16),
    (DataType::F64, 11, "float64", 64),
    (DataType::U32, 12, "uint32", 32),
    (DataType::U64, 13, "uint64", 64),
    (DataType::Complex64, 14, "complex64", 64),
    (DataType::Complex128, 15, "complex128", 128),
    (DataType::BF16, 16, "bfloat16", 16),
    (DataType::F8E4M3FN, 17, "float8e4m3fn", 8),
    (DataType::F8E4M3FNUZ, 18, "float8e4m3fnuz", 8),
    (DataType::F8E5M2, 19, "float8e5m2", 8),
    (DataType::F8E5M2FNUZ, 20, "float8e5m2fnuz", 8),
    (DataType::U4, 21, "uint4", 4),
    (DataType::I4, 22, "int4", 4),
    (DataType::F4E2M1, 23, "float4e2m1", 4),
    (DataType::F8E8M0, 24, "float8e8m0", 8),
    (DataType::U2, 25, "uint2", 2),
    (DataType::I2, 26, "int2", 2),
];

impl DataType {
    fn row(self) -> &'static (DataType, i32, &'static str, usize) {
        TABLE.iter().find(|row| row.0 == self).expect("every type has a row")
    }

    /// The type with this number in the ONNX standard.
    pub fn from_onnx(code: i64) -> Option<Self> {
        TABLE.iter().find(|row| i64::from(row.1) == code).map(|row| row.0)
    }

    /// This type's number in the ONNX standard.
    pub fn onnx_code(self) -> i32 {
        self.row().1
    }

    /// Bits that one element takes in a file; 0 for strings.
    pub fn bits(self) -> usize {
        self.row().3
    }

    /// Bytes that one element takes in memory, where narrow types take a whole byte.
    pub fn size_bytes(self) -> usize {
        match self {
            DataType::String => size_of::<String>(),
            other => other.bits().div_ceil(8),
        }
    }

    /// True for every real floating-point type, however narrow.
    pub fn is_float(self) -> bool {
        use DataType::*;
        matches!(self, F32 | F64 | F16 | BF16) || self.is_narrow_float()
    }

    /// True for floating-point types of 8 bits and fewer, which are stored as their codes.
    pub fn is_narrow_float(self) -> bool {
        use DataType::*;
        matches!(self, F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ | F8E8M0 | F4E2M1)
    }

    /// True for types of which [`crate::TensorData::Narrow`] holds one element per byte.
    pub fn is_narrow(self) -> bool {
        self.is_narrow_float()
            || matches!(self, DataType::I4 | DataType::U4 | DataType::I2 | DataType::U2)
    }

    /// True for integers, signed and unsigned, and not for bool.
    pub fn is_integer(self) -> bool {
        use DataType::*;
        matches!(self, I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64 | I4 | U4 | I2 | U2)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn onnx_codes_are_dense_and_round_trip() {
        for code in 1..=26 {
            let data_type = DataType::from_onnx(code).unwrap();
            assert_eq!(i64::from(data_type.onnx_code()), code);
        }
        assert_eq!(DataType::from_onnx(0), None);
        assert_eq!(DataType::from_onnx(27), None);
    }
}
