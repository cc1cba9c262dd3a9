//! What the parameters of requests, inputs and outputs mean, in whatever they were written.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use crate::error::{ProtocolError, clipped};
use crate::infer::{RegionRange, RequestParameters};

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ParameterValue<'a> {
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(Cow<'a, str>),
    /// Something that no parameter is.
    Other,
}

impl fmt::Display for ParameterValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "'{}'", clipped(value)),
            Self::Other => f.write_str("an array, an object or null"),
        }
    }
}

impl ParameterValue<'_> {
    /// An unsigned integer, which some clients write as a text.
    fn unsigned<T: TryFrom<i128>>(&self, name: &str) -> Result<T, String> {
        let integer = match self {
            Self::Integer(value) => Some(*value),
            Self::Text(text) => text.parse::<u64>().ok().map(i128::from),
            _ => None,
        };
        integer
            .filter(|&value| value >= 0)
            .and_then(|value| T::try_from(value).ok())
            .ok_or_else(|| format!("parameter '{name}' must be an unsigned integer, not {self}"))
    }

    fn bool(&self, name: &str) -> Result<bool, String> {
        match self {
            Self::Bool(value) => Ok(*value),
            _ => Err(format!("parameter '{name}' must be true or false, not {self}")),
        }
    }

    fn text(&self, name: &str) -> Result<String, String> {
        match self {
            Self::Text(value) => Ok(value.clone().into_owned()),
            _ => Err(format!("parameter '{name}' must be a text, not {self}")),
        }
    }

    /// True for what clients send where they mean nothing by it.
    fn is_empty(&self) -> bool {
        match self {
            Self::Bool(value) => !value,
            Self::Integer(value) => *value == 0,
            Self::Text(value) => value.is_empty(),
            Self::Float(_) | Self::Other => false,
        }
    }
}

impl RequestParameters {
    /// Takes one parameter; those that are not known mean nothing.
    pub(crate) fn set(
        &mut self,
        name: &str,
        value: &ParameterValue<'_>,
    ) -> Result<(), ProtocolError> {
        match name {
            "priority" => {
                self.priority = value.unsigned(name).map_err(ProtocolError::Malformed)?;
            }
            "timeout" => {
                let microseconds: u64 = value.unsigned(name).map_err(ProtocolError::Malformed)?;
                self.timeout = (microseconds > 0).then(|| Duration::from_micros(microseconds));
            }
            "binary_data_output" => {
                self.binary_outputs = value.bool(name).map_err(ProtocolError::Malformed)?;
            }
            "sequence_id" | "sequence_start" | "sequence_end" if !value.is_empty() => {
                return Err(ProtocolError::Unsupported(format!("a sequence ('{name}')")));
            }
            _ => {}
        }
        Ok(())
    }
}

/// The parameters of an input, or of an output in an answer.
#[derive(Default)]
pub(crate) struct TensorParameters {
    /// How many of the bytes after the header are its elements.
    pub(crate) binary_data_size: Option<usize>,
    pub(crate) shared_memory: SharedMemoryParameters,
}

impl TensorParameters {
    pub(crate) fn set(&mut self, name: &str, value: &ParameterValue<'_>) -> Result<(), String> {
        if name == "binary_data_size" {
            self.binary_data_size = Some(value.unsigned(name)?);
            return Ok(());
        }
        self.shared_memory.set(name, value)
    }
}

/// The parameters of an output that a request asks for.
#[derive(Default)]
pub(crate) struct RequestedOutputParameters {
    pub(crate) is_binary: Option<bool>,
    pub(crate) classification: Option<usize>,
    pub(crate) shared_memory: SharedMemoryParameters,
}

impl RequestedOutputParameters {
    pub(crate) fn set(&mut self, name: &str, value: &ParameterValue<'_>) -> Result<(), String> {
        match name {
            "binary_data" => self.is_binary = Some(value.bool(name)?),
            "classification" => {
                self.classification = Some(value.unsigned(name)?).filter(|&highest| highest > 0);
            }
            _ => self.shared_memory.set(name, value)?,
        }
        Ok(())
    }
}

/// The three parameters that say where in shared memory a tensor is.
#[derive(Default)]
pub(crate) struct SharedMemoryParameters {
    region: Option<String>,
    offset_bytes: Option<usize>,
    size_bytes: Option<usize>,
}

pub(crate) const REGION: &str = "shared_memory_region";
pub(crate) const OFFSET: &str = "shared_memory_offset";
pub(crate) const SIZE: &str = "shared_memory_byte_size";

impl SharedMemoryParameters {
    fn set(&mut self, name: &str, value: &ParameterValue<'_>) -> Result<(), String> {
        match name {
            REGION => self.region = Some(value.text(name)?),
            OFFSET => self.offset_bytes = Some(value.unsigned(name)?),
            SIZE => self.size_bytes = Some(value.unsigned(name)?),
            _ => {}
        }
        Ok(())
    }

    /// The place that they name; `None` where they name none.
    pub(crate) fn range(self) -> Result<Option<RegionRange>, String> {
        match (self.region, self.size_bytes) {
            (Some(region), Some(size_bytes)) => {
                let offset_bytes = self.offset_bytes.unwrap_or(0);
                Ok(Some(RegionRange { region, offset_bytes, size_bytes }))
            }
            (Some(_), None) => Err(format!("parameter '{REGION}' needs '{SIZE}' beside it")),
            (None, None) if self.offset_bytes.is_none() => Ok(None),
            (None, _) => Err(format!("parameters '{OFFSET}' and '{SIZE}' need '{REGION}'")),
        }
    }
}
