//! Requests for inference over gRPC.

use std::collections::BTreeMap;
use std::vec::IntoIter;

use bytes::Bytes;

use super::inference::infer_parameter::ParameterChoice;
use super::inference::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use super::inference::{InferTensorContents, ModelInferRequest};
use super::{contents, parameters};
use crate::data_types::{stated, wire_name};
use crate::error::ProtocolError;
use crate::infer::{InferRequest, InputTensor, RequestParameters, RequestedOutput, TensorSource};
use crate::limits::check_names;
use crate::parameters::{RequestedOutputParameters, TensorParameters};
use crate::raw::{nameless, raw_bytes, tensor_from_raw};
use crate::shape;

impl InferRequest {
    /// What a message asks for, whatever model it is for. Tensors stay slices of the message where that can be.
    pub fn from_grpc(message: ModelInferRequest) -> Result<Self, ProtocolError> {
        check_names("input", message.inputs.iter().map(|input| &*input.name))?;
        check_names("output", message.outputs.iter().map(|output| &*output.name))?;
        let mut parameters = RequestParameters::default();
        for (name, parameter) in &message.parameters {
            parameters.set(name, &parameters::value(parameter))?;
        }
        let mut elements = Elements::new(message.raw_input_contents);
        let inputs = message.inputs.into_iter().map(|input| read_input(input, &mut elements));
        let inputs = inputs.collect::<Result<_, _>>()?;
        elements.check_end()?;
        let outputs = message.outputs.into_iter().map(read_output).collect::<Result<_, _>>()?;
        Ok(Self { id: message.id, parameters, inputs, outputs })
    }

    /// The message that asks this of a model; an empty version leaves the choice to the server.
    pub fn into_grpc(
        self,
        model_name: &str,
        model_version: &str,
    ) -> Result<ModelInferRequest, ProtocolError> {
        let mut message = ModelInferRequest {
            model_name: model_name.to_owned(),
            model_version: model_version.to_owned(),
            id: self.id,
            ..Default::default()
        };
        let mut set = |name, value| parameters::insert(&mut message.parameters, name, value);
        if self.parameters.priority > 0 {
            set("priority", ParameterChoice::Uint64Param(self.parameters.priority));
        }
        if let Some(timeout) = self.parameters.timeout {
            let microseconds = i64::try_from(timeout.as_micros()).unwrap_or(i64::MAX);
            set("timeout", ParameterChoice::Int64Param(microseconds));
        }
        for input in self.inputs {
            let problem = |problem| ProtocolError::tensor(&input.name, problem);
            let mut parameters = BTreeMap::new();
            match &input.data {
                TensorSource::Tensor(tensor) => {
                    message.raw_input_contents.push(raw_bytes(tensor).map_err(problem)?);
                }
                TensorSource::SharedMemory(range) => {
                    parameters::insert_range(&mut parameters, range);
                }
            }
            let datatype =
                wire_name(input.data_type).ok_or_else(|| problem(nameless(input.data_type)))?;
            message.inputs.push(InferInputTensor {
                datatype: datatype.to_owned(),
                shape: input.shape.iter().map(|&dimension| dimension as i64).collect(),
                name: input.name,
                parameters,
                contents: None,
            });
        }
        message.outputs = self.outputs.into_iter().map(write_output).collect();
        Ok(message)
    }
}

/// The elements of a message's inputs: all raw, or none.
struct Elements {
    raw: Option<IntoIter<Bytes>>,
}

impl Elements {
    fn new(raw: Vec<Bytes>) -> Self {
        Self { raw: (!raw.is_empty()).then(|| raw.into_iter()) }
    }

    /// The next raw contents, or those of the input itself.
    fn next(&mut self, contents: Option<Box<InferTensorContents>>) -> Result<Given, String> {
        match (&mut self.raw, contents) {
            (None, Some(contents)) => Ok(Given::Contents(*contents)),
            (None, None) => Err("has no data".into()),
            (Some(_), Some(_)) => Err("has contents beside the request's raw contents".into()),
            (Some(raw), None) => raw
                .next()
                .map(Given::Raw)
                .ok_or_else(|| "there are fewer raw contents than inputs".into()),
        }
    }

    fn check_end(self) -> Result<(), ProtocolError> {
        match self.raw.map_or(0, |raw| raw.len()) {
            0 => Ok(()),
            left => Err(ProtocolError::Malformed(format!(
                "there are {left} raw contents more than inputs outside shared memory"
            ))),
        }
    }
}

enum Given {
    Raw(Bytes),
    Contents(InferTensorContents),
}

fn read_input(
    input: InferInputTensor,
    elements: &mut Elements,
) -> Result<InputTensor, ProtocolError> {
    let InferInputTensor { name, datatype, shape, parameters: given_parameters, contents } = input;
    let problem = |problem| ProtocolError::tensor(&name, problem);
    let data_type = stated(&datatype).map_err(problem)?;
    let shape =
        shape.into_iter().map(shape::dimension).collect::<Result<Vec<_>, _>>().map_err(problem)?;
    shape::count(&shape, data_type).map_err(problem)?;
    let mut parameters = TensorParameters::default();
    for (name, parameter) in &given_parameters {
        parameters.set(name, &parameters::value(parameter)).map_err(problem)?;
    }
    let data = match parameters.shared_memory.range().map_err(problem)? {
        Some(_) if contents.is_some() => {
            return Err(problem("has contents beside its place in shared memory".into()));
        }
        Some(range) => TensorSource::SharedMemory(range),
        None => TensorSource::Tensor(
            match elements.next(contents).map_err(problem)? {
                Given::Raw(bytes) => tensor_from_raw(data_type, shape.clone(), bytes),
                Given::Contents(contents) => contents::tensor(data_type, shape.clone(), contents),
            }
            .map_err(problem)?,
        ),
    };
    Ok(InputTensor { name, data_type, shape, data })
}

fn read_output(output: InferRequestedOutputTensor) -> Result<RequestedOutput, ProtocolError> {
    let InferRequestedOutputTensor { name, parameters: given } = output;
    let problem = |problem| ProtocolError::tensor(&name, problem);
    let mut parameters = RequestedOutputParameters::default();
    for (name, parameter) in &given {
        parameters.set(name, &parameters::value(parameter)).map_err(problem)?;
    }
    let shared_memory = parameters.shared_memory.range().map_err(problem)?;
    let RequestedOutputParameters { is_binary, classification, .. } = parameters;
    Ok(RequestedOutput { name, is_binary, classification, shared_memory })
}

fn write_output(output: RequestedOutput) -> InferRequestedOutputTensor {
    let mut parameters = BTreeMap::new();
    if let Some(highest) = output.classification {
        let choice = ParameterChoice::Int64Param(highest as i64);
        parameters::insert(&mut parameters, "classification", choice);
    }
    if let Some(range) = &output.shared_memory {
        parameters::insert_range(&mut parameters, range);
    }
    InferRequestedOutputTensor { name: output.name, parameters }
}
