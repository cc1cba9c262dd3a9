//! One call at a time on a shared connection.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use weft_protocol::grpc::inference::ModelInferResponse;
use weft_protocol::{InferResponse, raw_bytes};

use super::call::{CallError, unary};
use super::channel::{Channel, INFERENCE};
use crate::output_size::output_size;
use crate::reply::{OutputPlace, Outputs, Reply};

/// A place on a connection.
pub(crate) struct Stream {
    pub(crate) channel: Arc<Channel>,
}

impl Stream {
    /// Sends a request for inference.
    pub(crate) async fn ask(&self, message: &Bytes, outputs: OutputPlace) -> Reply<'static> {
        let answer = self.infer(message).await;
        let outputs = answer.and_then(|answer| match outputs {
            OutputPlace::Answer => outputs_of(answer).map(Cow::Owned).map(Outputs::Carried),
            OutputPlace::SharedMemory => shared_bytes(&answer).map(Outputs::Shared),
        });
        outputs.map_or_else(CallError::into_reply, Reply::Answered)
    }

    /// The answer to a request for inference.
    pub(super) async fn infer(&self, message: &Bytes) -> Result<ModelInferResponse, CallError> {
        let answer = self.call(INFERENCE, message.clone()).await?;
        ModelInferResponse::decode(answer).map_err(|error| CallError::Malformed(error.to_string()))
    }

    /// Calls a method with a message that is framed.
    pub(super) async fn call(&self, method: &str, framed: Bytes) -> Result<Bytes, CallError> {
        let opened = self.channel.open().await;
        let mut sender = opened.map_err(|error| CallError::Connection(error.to_string()))?;
        unary(&mut sender, self.channel.head(method)?, framed).await
    }
}

/// The elements of all outputs of an answer.
fn outputs_of(answer: ModelInferResponse) -> Result<Vec<u8>, CallError> {
    let malformed = |problem: String| CallError::Malformed(problem);
    if !answer.raw_output_contents.is_empty() {
        return Ok(answer.raw_output_contents.concat());
    }
    let answer = InferResponse::from_grpc(answer).map_err(|error| malformed(error.to_string()))?;
    let outputs = answer.outputs.iter().map(|output| raw_bytes(&output.tensor));
    Ok(outputs.collect::<Result<Vec<Bytes>, String>>().map_err(malformed)?.concat())
}

/// How much all outputs of an answer take that are in shared memory.
fn shared_bytes(answer: &ModelInferResponse) -> Result<usize, CallError> {
    let sizes = answer.outputs.iter().map(|output| output_size(&output.datatype, &output.shape));
    sizes.sum::<Result<usize, String>>().map_err(CallError::Malformed)
}
