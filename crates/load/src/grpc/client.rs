//! What is asked before a run: what the models take.

use std::rc::Rc;

use bytes::Bytes;
use prost::Message;
use weft_protocol::InferRequest;
use weft_protocol::grpc::inference::{ModelMetadataRequest, ModelMetadataResponse};

use super::call::framed;
use super::channel::Channel;
use super::stream::Stream;
use crate::declared::DeclaredModel;
use crate::error::LoadError;
use crate::reply::Reply;
use crate::target::Target;

/// A server that can be asked.
pub(crate) struct Client {
    stream: Stream,
}

impl Client {
    /// Connects.
    pub(crate) async fn connect(target: Rc<Target>) -> Result<Self, LoadError> {
        let address = target.address.clone();
        let channel = Rc::new(Channel::new(target));
        match channel.open().await {
            Ok(_) => Ok(Self { stream: Stream { channel } }),
            Err(source) => Err(LoadError::Connection { address, source }),
        }
    }

    /// What a model takes and gives.
    pub(crate) async fn describe(&self, model: &str) -> Result<DeclaredModel, LoadError> {
        let failed = |answer: String| LoadError::Server {
            what: format!("what model '{model}' takes"),
            answer,
        };
        let request = ModelMetadataRequest { name: model.to_string(), version: String::new() };
        let answer = self.stream.call("ModelMetadata", framed(&request)).await;
        let answer = answer.map_err(|error| failed(error.to_string()))?;
        let metadata = ModelMetadataResponse::decode(answer);
        DeclaredModel::new(model, metadata.map_err(|error| failed(error.to_string()))?)
    }

    /// A request of a model as it is sent.
    pub(crate) fn encode(&self, model: &str, request: InferRequest) -> Result<Bytes, LoadError> {
        let message = request.into_grpc(model, "").map_err(|error| LoadError::Model {
            model: model.to_string(),
            problem: error.to_string(),
        })?;
        Ok(framed(&message))
    }

    /// Sends a request of a model.
    pub(crate) async fn ask(&self, message: &Bytes) -> Reply<'static> {
        self.stream.ask(message).await
    }
}
