//! Answers to requests for inference over gRPC.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::inference::ModelInferResponse;
use super::inference::model_infer_response::InferOutputTensor;
use super::{contents, parameters};
use crate::data_types::{stated, wire_name};
use crate::error::ProtocolError;
use crate::infer::{InferResponse, OutputTensor};
use crate::limits::check_names;
use crate::parameters::TensorParameters;
use crate::raw::{nameless, raw_bytes, tensor_from_raw};
use crate::shape;

impl InferResponse {
    /// The message that says this; elements are always raw contents.
    pub fn into_grpc(self) -> Result<ModelInferResponse, ProtocolError> {
        let mut outputs = Vec::with_capacity(self.outputs.len());
        let mut raw_output_contents = Vec::with_capacity(self.outputs.len());
        for output in self.outputs {
            let problem = |problem| ProtocolError::tensor(&output.name, problem);
            let data_type = output.tensor.data_type();
            let datatype = wire_name(data_type).ok_or_else(|| problem(nameless(data_type)))?;
            let mut parameters = BTreeMap::new();
            // Clients count through both lists at once, so an output in shared memory has its empty place.
            raw_output_contents.push(match &output.shared_memory {
                Some(range) => {
                    parameters::insert_range(&mut parameters, range);
                    Bytes::new()
                }
                None => raw_bytes(&output.tensor).map_err(problem)?,
            });
            outputs.push(InferOutputTensor {
                datatype: datatype.to_owned(),
                shape: output.tensor.shape().iter().map(|&dimension| dimension as i64).collect(),
                name: output.name,
                parameters,
                contents: None,
            });
        }
        Ok(ModelInferResponse {
            model_name: self.model_name,
            model_version: self.model_version,
            id: self.id,
            parameters: BTreeMap::new(),
            outputs,
            raw_output_contents,
        })
    }

    /// What a message says. Outputs in shared memory are not supported.
    pub fn from_grpc(message: ModelInferResponse) -> Result<Self, ProtocolError> {
        check_names("output", message.outputs.iter().map(|output| &*output.name))?;
        let mut raw = message.raw_output_contents.into_iter();
        let outputs = message.outputs.into_iter().map(|output| read_output(output, raw.next()));
        Ok(Self {
            outputs: outputs.collect::<Result<_, _>>()?,
            model_name: message.model_name,
            model_version: message.model_version,
            id: message.id,
        })
    }
}

fn read_output(
    output: InferOutputTensor,
    raw: Option<Bytes>,
) -> Result<OutputTensor, ProtocolError> {
    let InferOutputTensor { name, datatype, shape, parameters: given, contents } = output;
    let problem = |problem| ProtocolError::tensor(&name, problem);
    let data_type = stated(&datatype).map_err(problem)?;
    let shape =
        shape.into_iter().map(shape::dimension).collect::<Result<Vec<_>, _>>().map_err(problem)?;
    let mut parameters = TensorParameters::default();
    for (name, parameter) in &given {
        parameters.set(name, &parameters::value(parameter)).map_err(problem)?;
    }
    if parameters.shared_memory.range().map_err(problem)?.is_some() {
        return Err(ProtocolError::Unsupported("reading an output in shared memory".into()));
    }
    let tensor = match (raw, contents) {
        (_, Some(contents)) => contents::tensor(data_type, shape, *contents),
        (Some(bytes), None) => tensor_from_raw(data_type, shape, bytes),
        (None, None) => Err("has no data".into()),
    };
    let tensor = tensor.map_err(problem)?;
    Ok(OutputTensor { name, tensor, is_binary: false, shared_memory: None })
}
