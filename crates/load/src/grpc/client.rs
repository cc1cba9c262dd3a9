//! What is asked before a run: what the server offers, what its models take.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use weft_protocol::grpc::inference::{
    ModelMetadataRequest, ModelMetadataResponse, ServerMetadataRequest, ServerMetadataResponse,
    SystemSharedMemoryRegisterRequest, SystemSharedMemoryUnregisterRequest,
};
use weft_protocol::{InferRequest, InferResponse, OutputTensor, ProtocolError};

use super::call::framed;
use super::channel::Channel;
use super::stream::Stream;
use crate::declared::DeclaredModel;
use crate::error::LoadError;
use crate::reply::{OutputPlace, Reply};
use crate::target::Target;

/// A server that can be asked.
pub(crate) struct Client {
    stream: Stream,
}

impl Client {
    /// Connects.
    pub(crate) async fn connect(target: Arc<Target>) -> Result<Self, LoadError> {
        let address = target.address.clone();
        let channel = Arc::new(Channel::new(target));
        match channel.open().await {
            Ok(_) => Ok(Self { stream: Stream { channel } }),
            Err(source) => Err(LoadError::Connection { address, source }),
        }
    }

    /// What the server offers beyond the protocol.
    pub(crate) async fn extensions(&self) -> Result<Vec<String>, LoadError> {
        let failed =
            |answer: String| LoadError::Server { what: "what the server offers".into(), answer };
        let answer = self.stream.call("ServerMetadata", framed(&ServerMetadataRequest {})).await;
        let answer = answer.map_err(|error| failed(error.to_string()))?;
        let server = ServerMetadataResponse::decode(answer);
        Ok(server.map_err(|error| failed(error.to_string()))?.extensions)
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

    /// Sends a request of a model.
    pub(crate) async fn ask(&self, message: &Bytes, outputs: OutputPlace) -> Reply<'static> {
        self.stream.ask(message, outputs).await
    }

    /// Sends a request of a model, and reads the outputs in its answer; else what the server said.
    pub(crate) async fn infer(&self, message: &Bytes) -> Result<Vec<OutputTensor>, String> {
        let answer = self.stream.infer(message).await.map_err(|error| error.to_string())?;
        Ok(InferResponse::from_grpc(answer).map_err(|error| error.to_string())?.outputs)
    }

    /// Tells the server of shared memory; else what it said.
    pub(crate) async fn register(
        &self,
        name: &str,
        key: &str,
        size_bytes: u64,
    ) -> Result<(), String> {
        let request = SystemSharedMemoryRegisterRequest {
            name: name.to_string(),
            key: key.to_string(),
            offset: 0,
            byte_size: size_bytes,
        };
        self.call("SystemSharedMemoryRegister", &request).await
    }

    /// Has the server forget shared memory; else what it said.
    pub(crate) async fn unregister(&self, name: &str) -> Result<(), String> {
        let request = SystemSharedMemoryUnregisterRequest { name: name.to_string() };
        self.call("SystemSharedMemoryUnregister", &request).await
    }

    /// Calls a method whose answer says nothing.
    async fn call(&self, method: &str, request: &impl Message) -> Result<(), String> {
        let answer = self.stream.call(method, framed(request)).await;
        answer.map(drop).map_err(|error| error.to_string())
    }
}

/// A request for inference.
pub(crate) fn encode(model: &str, request: InferRequest) -> Result<Bytes, ProtocolError> {
    Ok(framed(&request.into_grpc(model, "")?))
}
