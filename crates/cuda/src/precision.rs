//! How numbers are stored and multiplied on the device.

use std::fmt;
use std::str::FromStr;

use weft_ir::DataType;

/// The precision a model runs at: how its floating-point values are stored, and what multiplies them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Stored as `f16`, multiplied as `f16`, summed in `f32`.
    #[default]
    F16,
    /// Stored as `bf16`, multiplied as `bf16`, summed in `f32`.
    Bf16,
    /// Stored as `f32`, multiplied with 16 bits of mantissa (at least those of tf32), summed in `f32`.
    Tf32,
    /// Stored as `f32`, multiplied with 21 bits of mantissa, summed in `f32`.
    F32,
}

impl Precision {
    /// All of them.
    pub const ALL: [Precision; 4] =
        [Precision::F16, Precision::Bf16, Precision::Tf32, Precision::F32];

    /// The name on the command line and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F16 => "f16",
            Precision::Bf16 => "bf16",
            Precision::Tf32 => "tf32",
            Precision::F32 => "f32",
        }
    }

    /// How floating-point values are stored.
    pub fn storage(self) -> Storage {
        match self {
            Precision::F16 => Storage::F16,
            Precision::Bf16 => Storage::Bf16,
            Precision::Tf32 | Precision::F32 => Storage::F32,
        }
    }

    /// How a value of the graph's `data_type` is stored; `None` where it stays on the host.
    pub fn storage_of(self, data_type: DataType) -> Option<Storage> {
        let exact = Storage::exact(data_type)?;
        Some(if exact.is_float() { self.storage() } else { exact })
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no precision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no precision; it is one of f16, bf16, tf32, f32")]
pub struct ParsePrecisionError(String);

impl FromStr for Precision {
    type Err = ParsePrecisionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|precision| precision.name() == text)
            .ok_or_else(|| ParsePrecisionError(text.to_string()))
    }
}

/// How the elements of a value lie in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Storage {
    F16,
    Bf16,
    F32,
    I64,
    I32,
    U8,
    I8,
    Bool,
}

impl Storage {
    /// All of them.
    pub const ALL: [Storage; 8] = [
        Storage::F16,
        Storage::Bf16,
        Storage::F32,
        Storage::I64,
        Storage::I32,
        Storage::U8,
        Storage::I8,
        Storage::Bool,
    ];

    /// The name in kernels of a type of the same size, for kernels that only move elements.
    pub fn bits_name(self) -> &'static str {
        match self.size_bytes() {
            8 => "unsigned long long",
            4 => "unsigned int",
            2 => "unsigned short",
            _ => "unsigned char",
        }
    }

    /// The storage whose elements are those of the graph's `data_type` bit by bit; `None` where it stays on the host.
    pub fn exact(data_type: DataType) -> Option<Self> {
        Some(match data_type {
            DataType::F16 => Storage::F16,
            DataType::BF16 => Storage::Bf16,
            DataType::F32 => Storage::F32,
            DataType::I64 => Storage::I64,
            DataType::I32 => Storage::I32,
            DataType::U8 => Storage::U8,
            DataType::I8 => Storage::I8,
            DataType::Bool => Storage::Bool,
            _ => return None,
        })
    }

    /// The type's name in kernels.
    pub fn cuda_name(self) -> &'static str {
        match self {
            Storage::F16 => "__half",
            Storage::Bf16 => "__nv_bfloat16",
            Storage::F32 => "float",
            Storage::I64 => "long long",
            Storage::I32 => "int",
            Storage::U8 => "unsigned char",
            Storage::I8 => "signed char",
            Storage::Bool => "bool",
        }
    }

    /// The size of one element.
    pub fn size_bytes(self) -> usize {
        match self {
            Storage::I64 => 8,
            Storage::F32 | Storage::I32 => 4,
            Storage::F16 | Storage::Bf16 => 2,
            Storage::U8 | Storage::I8 | Storage::Bool => 1,
        }
    }

    /// True where it is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Storage::F16 | Storage::Bf16 | Storage::F32)
    }
}
