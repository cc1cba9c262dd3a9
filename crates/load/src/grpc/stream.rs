//! One call at a time on a shared connection.

use std::borrow::Cow;
use std::rc::Rc;

use bytes::Bytes;
use prost::Message;
use weft_protocol::grpc::inference::ModelInferResponse;
use weft_protocol::{InferResponse, raw_bytes};

use super::call::{CallError, unary};
use super::channel::Channel;
use crate::reply::Reply;

/// A place on a connection.
pub(crate) struct Stream {
    pub(crate) channel: Rc<Channel>,
}

impl Stream {
    /// Sends a request for inference.
    pub(crate) async fn ask(&self, message: &Bytes) -> Reply<'static> {
        match self.call("ModelInfer", message.clone()).await.and_then(outputs_of) {
            Ok(outputs) => Reply::Answered(Cow::Owned(outputs)),
            Err(error) => error.into_reply(),
        }
    }

    /// Calls a method with a message that is framed.
    pub(super) async fn call(&self, method: &str, framed: Bytes) -> Result<Bytes, CallError> {
        let opened = self.channel.open().await;
        let mut sender = opened.map_err(|error| CallError::Connection(error.to_string()))?;
        unary(&mut sender, &self.channel.target, method, framed).await
    }
}

/// The elements of all outputs of an answer.
fn outputs_of(message: Bytes) -> Result<Vec<u8>, CallError> {
    let malformed = |problem: String| CallError::Malformed(problem);
    let answer =
        ModelInferResponse::decode(message).map_err(|error| malformed(error.to_string()))?;
    if !answer.raw_output_contents.is_empty() {
        return Ok(answer.raw_output_contents.concat());
    }
    let answer = InferResponse::from_grpc(answer).map_err(|error| malformed(error.to_string()))?;
    let outputs = answer.outputs.iter().map(|output| raw_bytes(&output.tensor));
    Ok(outputs.collect::<Result<Vec<Bytes>, String>>().map_err(malformed)?.concat())
}
