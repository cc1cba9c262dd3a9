//! What a model takes and gives, as a server declares it.

use weft_ir::DataType;
use weft_protocol::data_types;
use weft_protocol::grpc::inference::ModelMetadataResponse;
use weft_protocol::grpc::inference::model_metadata_response::TensorMetadata;

use crate::error::LoadError;

/// A model as a server declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeclaredModel {
    pub(crate) inputs: Vec<DeclaredInput>,
    /// Whether all outputs are of `f32`.
    pub(crate) has_only_f32_outputs: bool,
}

/// One of its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeclaredInput {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    /// Below zero where it is open.
    pub(crate) shape: Vec<i64>,
}

impl DeclaredModel {
    /// What a server says of a model of this name.
    pub(crate) fn new(model: &str, metadata: ModelMetadataResponse) -> Result<Self, LoadError> {
        let is_f32 = |output: &TensorMetadata| {
            data_types::from_wire_name(&output.datatype) == Some(DataType::F32)
        };
        let has_only_f32_outputs = metadata.outputs.iter().all(is_f32);
        let input = |TensorMetadata { name, datatype, shape }| match data_types::from_wire_name(
            &datatype,
        ) {
            Some(data_type) => Ok(DeclaredInput { name, data_type, shape }),
            None => Err(LoadError::Model {
                model: model.to_string(),
                problem: format!("input '{name}' has the unknown type '{datatype}'"),
            }),
        };
        let inputs = metadata.inputs.into_iter().map(input).collect::<Result<_, _>>()?;
        Ok(Self { inputs, has_only_f32_outputs })
    }
}
