//! Inputs as a server declares them.

use weft_ir::DataType;
use weft_protocol::data_types;

use crate::error::LoadError;

/// An input as a server declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeclaredInput {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    /// Below zero where it is open.
    pub(crate) shape: Vec<i64>,
}

impl DeclaredInput {
    /// An input of a model, with its type as it is called in messages.
    pub(crate) fn new(
        model: &str,
        name: String,
        data_type: &str,
        shape: Vec<i64>,
    ) -> Result<Self, LoadError> {
        let Some(data_type) = data_types::from_wire_name(data_type) else {
            let problem = format!("input '{name}' has the unknown type '{data_type}'");
            return Err(LoadError::Model { model: model.to_string(), problem });
        };
        Ok(Self { name, data_type, shape })
    }
}
