//! Answers to requests for inference as JSON.

use bytes::Bytes;

use super::body::{EncodedBody, ReceivedBody};
use super::cursor::Cursor;
use super::reading::{ReadTensor, read_tensor};
use super::writing::{BinaryParts, Members, append_elements};
use crate::error::ProtocolError;
use crate::infer::{InferResponse, OutputTensor, TensorSource};
use crate::limits::{check_count, check_names};

/// Writes an answer. Numbers that are not finite are written as `NaN`, `Infinity` and `-Infinity`, as Triton does and as
/// Python reads them, although JSON has no such numbers: `null` would hide which it was.
pub fn encode_response(response: &InferResponse) -> Result<EncodedBody, ProtocolError> {
    let mut header = Vec::with_capacity(512);
    let mut binary = BinaryParts::default();
    let mut members = Members::open(&mut header);
    members.text("model_name", &response.model_name);
    members.text("model_version", &response.model_version);
    if !response.id.is_empty() {
        members.text("id", &response.id);
    }
    members.array("outputs", &response.outputs, |out, output| {
        let problem = |problem| ProtocolError::tensor(&output.name, problem);
        let tensor = &output.tensor;
        let mut members = Members::open(out);
        members.tensor(&output.name, tensor.data_type(), tensor.shape()).map_err(problem)?;
        // Of an output in shared memory the client knows the place. Triton's C++ client takes any parameters for those of
        // a tensor that follows as bytes, and gives up without its size.
        if output.shared_memory.is_none() {
            if output.is_binary {
                members.binary_size(binary.add(&output.name, tensor));
            } else {
                append_elements(members.value("data"), tensor).map_err(problem)?;
            }
        }
        members.close();
        Ok(())
    })?;
    members.close();
    binary.follow(header)
}

/// Reads an answer, with the header's length as [`super::decode_request`] takes it. Outputs in shared memory are not
/// supported.
pub fn decode_response(
    body: &Bytes,
    header_length: Option<usize>,
) -> Result<InferResponse, ProtocolError> {
    let mut received = ReceivedBody::new(body, header_length)?;
    let mut cursor = Cursor::with_non_finite(received.header);
    let mut response = InferResponse {
        model_name: String::new(),
        model_version: String::new(),
        id: String::new(),
        outputs: Vec::new(),
    };
    cursor.object(|cursor, member| -> Result<(), ProtocolError> {
        match member {
            "model_name" => response.model_name = cursor.text()?.into_owned(),
            "model_version" => response.model_version = cursor.text()?.into_owned(),
            "id" => response.id = cursor.text()?.into_owned(),
            "outputs" => cursor.array(|cursor| {
                check_count("output", response.outputs.len() + 1)?;
                let place = || format!("outputs[{}]", response.outputs.len());
                let tensor = read_tensor(cursor, &mut received, place)?;
                response.outputs.push(output(tensor)?);
                Ok::<_, ProtocolError>(())
            })?,
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    cursor.end()?;
    received.check_end()?;
    check_names("output", response.outputs.iter().map(|output| &*output.name))?;
    Ok(response)
}

fn output(read: ReadTensor) -> Result<OutputTensor, ProtocolError> {
    let ReadTensor { name, data, is_binary, .. } = read;
    match data {
        TensorSource::Tensor(tensor) => {
            Ok(OutputTensor { name, tensor, is_binary, shared_memory: None })
        }
        TensorSource::SharedMemory(_) => {
            Err(ProtocolError::Unsupported("reading an output in shared memory".into()))
        }
    }
}
