//! Requests for inference as JSON.

use bytes::Bytes;

use super::body::{EncodedBody, ReceivedBody};
use super::cursor::Cursor;
use super::reading::{ReadTensor, read_parameters, read_tensor};
use super::writing::{BinaryParts, Members, append_elements};
use crate::error::ProtocolError;
use crate::infer::{InferRequest, InputTensor, RequestParameters, RequestedOutput, TensorSource};
use crate::limits::{check_count, check_names};
use crate::parameters::RequestedOutputParameters;

/// Reads a request. `header_length` is what `Inference-Header-Content-Length` says: where the JSON ends and the bytes of
/// tensors begin. These are not copied where their alignment allows.
pub fn decode_request(
    body: &Bytes,
    header_length: Option<usize>,
) -> Result<InferRequest, ProtocolError> {
    if header_length == Some(0) {
        return Err(ProtocolError::Unsupported("a request without a JSON header".into()));
    }
    let mut received = ReceivedBody::new(body, header_length)?;
    let mut cursor = Cursor::new(received.header);
    let mut id = String::new();
    let mut parameters = RequestParameters::default();
    let mut inputs: Option<Vec<InputTensor>> = None;
    let mut outputs: Vec<RequestedOutput> = Vec::new();
    cursor.object(|cursor, member| -> Result<(), ProtocolError> {
        match member {
            "id" => id = cursor.text()?.into_owned(),
            "parameters" => {
                read_parameters(cursor, |name, value| parameters.set(name, &value))?;
            }
            "inputs" => {
                let inputs = inputs.get_or_insert_default();
                cursor.array(|cursor| {
                    check_count("input", inputs.len() + 1)?;
                    let place = || format!("inputs[{}]", inputs.len());
                    let tensor = read_tensor(cursor, &mut received, place)?;
                    let ReadTensor { name, data_type, shape, data, .. } = tensor;
                    inputs.push(InputTensor { name, data_type, shape, data });
                    Ok::<_, ProtocolError>(())
                })?;
            }
            "outputs" => cursor.array(|cursor| {
                check_count("output", outputs.len() + 1)?;
                outputs.push(read_requested_output(cursor, outputs.len())?);
                Ok::<_, ProtocolError>(())
            })?,
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    cursor.end()?;
    received.check_end()?;
    let inputs = inputs.ok_or_else(|| ProtocolError::Malformed("'inputs' is missing".into()))?;
    check_names("input", inputs.iter().map(|input| &*input.name))?;
    check_names("output", outputs.iter().map(|output| &*output.name))?;
    Ok(InferRequest { id, parameters, inputs, outputs })
}

fn read_requested_output(
    cursor: &mut Cursor<'_>,
    index: usize,
) -> Result<RequestedOutput, ProtocolError> {
    let mut name = None;
    let mut parameters = RequestedOutputParameters::default();
    let read = cursor.object(|cursor, member| match member {
        "name" => {
            name = Some(cursor.text()?.into_owned());
            Ok(())
        }
        "parameters" => read_parameters(cursor, |name, value| parameters.set(name, &value)),
        _ => cursor.skip(),
    });
    let RequestedOutputParameters { is_binary, classification, shared_memory } = parameters;
    let range = read.and_then(|()| match name {
        Some(_) => shared_memory.range(),
        None => Err("has no name".into()),
    });
    let name = name.unwrap_or_else(|| format!("outputs[{index}]"));
    match range {
        Ok(shared_memory) => Ok(RequestedOutput { name, is_binary, classification, shared_memory }),
        Err(problem) => Err(ProtocolError::Tensor { name, problem }),
    }
}

/// How a tensor's elements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorForm {
    /// As numbers and texts in the JSON.
    Json,
    /// As bytes behind the JSON.
    Binary,
}

/// Writes a request whose inputs have this form.
pub fn encode_request(
    request: &InferRequest,
    form: TensorForm,
) -> Result<EncodedBody, ProtocolError> {
    let mut header = Vec::new();
    let mut binary = BinaryParts::default();
    let mut members = Members::open(&mut header);
    if !request.id.is_empty() {
        members.text("id", &request.id);
    }
    write_parameters(&mut members, &request.parameters);
    members.array("inputs", &request.inputs, |out, input| {
        let problem = |problem| ProtocolError::tensor(&input.name, problem);
        let mut members = Members::open(out);
        members.tensor(&input.name, input.data_type, &input.shape).map_err(problem)?;
        match (&input.data, form) {
            (TensorSource::SharedMemory(range), _) => members.place(range),
            (TensorSource::Tensor(tensor), TensorForm::Binary) => {
                members.binary_size(binary.add(&input.name, tensor));
            }
            (TensorSource::Tensor(tensor), TensorForm::Json) => {
                append_elements(members.value("data"), tensor).map_err(problem)?;
            }
        }
        members.close();
        Ok(())
    })?;
    if !request.outputs.is_empty() {
        members.array("outputs", &request.outputs, |out, output| {
            write_requested_output(out, output);
            Ok(())
        })?;
    }
    members.close();
    binary.follow(header)
}

fn write_parameters(members: &mut Members<'_>, parameters: &RequestParameters) {
    if *parameters == RequestParameters::default() {
        return;
    }
    let mut parameter = Members::open(members.value("parameters"));
    if parameters.priority > 0 {
        parameter.integer("priority", parameters.priority);
    }
    if let Some(timeout) = parameters.timeout {
        parameter.integer("timeout", u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX));
    }
    if parameters.binary_outputs {
        parameter.bool("binary_data_output", true);
    }
    parameter.close();
}

fn write_requested_output(out: &mut Vec<u8>, output: &RequestedOutput) {
    let mut members = Members::open(out);
    members.text("name", &output.name);
    let plain = RequestedOutput { name: output.name.clone(), ..Default::default() };
    if *output != plain {
        let mut parameter = Members::open(members.value("parameters"));
        if let Some(is_binary) = output.is_binary {
            parameter.bool("binary_data", is_binary);
        }
        if let Some(highest) = output.classification {
            parameter.integer("classification", highest as u64);
        }
        if let Some(range) = &output.shared_memory {
            parameter.range(range);
        }
        parameter.close();
    }
    members.close();
}
