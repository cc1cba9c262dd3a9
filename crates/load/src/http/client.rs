//! What is asked before a run: what the server offers, what its models take.

use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use weft_protocol::OutputTensor;
use weft_protocol::grpc::inference::{ModelMetadataResponse, ServerMetadataResponse};
use weft_protocol::json::{TensorForm, decode_response};

use super::connection::{Answer, Connection};
use super::message::{escaped, get, post, rejection_of};
use crate::declared::DeclaredModel;
use crate::error::LoadError;
use crate::reply::{OutputPlace, Reply};
use crate::target::Target;

/// A server that was asked what it offers.
pub(crate) struct Client {
    target: Arc<Target>,
    connection: Connection,
    extensions: Vec<String>,
}

impl Client {
    /// Connects, and asks in which form the server takes tensors.
    pub(crate) async fn connect(target: Arc<Target>) -> Result<Self, LoadError> {
        let mut connection = Connection::new(target.clone());
        let refused = |source| LoadError::Connection { address: target.address.clone(), source };
        connection.open().await.map_err(refused)?;
        let mut client = Self { target: target.clone(), connection, extensions: Vec::new() };
        let server: ServerMetadataResponse = client.get("/v2", "what the server offers").await?;
        client.extensions = server.extensions;
        Ok(client)
    }

    /// What the server offers beyond the protocol.
    pub(crate) fn extensions(&self) -> &[String] {
        &self.extensions
    }

    /// In which form the server takes tensors.
    pub(crate) fn form(&self) -> TensorForm {
        match self.extensions.iter().any(|extension| extension == "binary_tensor_data") {
            true => TensorForm::Binary,
            false => TensorForm::Json,
        }
    }

    /// What a model takes and gives.
    pub(crate) async fn describe(&mut self, model: &str) -> Result<DeclaredModel, LoadError> {
        let what = format!("what model '{model}' takes");
        let path = format!("/v2/models/{}", escaped(model));
        let metadata: ModelMetadataResponse = self.get(&path, &what).await?;
        DeclaredModel::new(model, metadata)
    }

    /// Sends a request of a model.
    pub(crate) async fn ask(&mut self, message: &Bytes, outputs: OutputPlace) -> Reply<'_> {
        self.connection.ask(message, outputs).await
    }

    /// Sends a request of a model, and reads the outputs in its answer; else what the server said.
    pub(crate) async fn infer(&mut self, message: &Bytes) -> Result<Vec<OutputTensor>, String> {
        let answer = self.answered(message).await?;
        let decoded = decode_response(&Bytes::copy_from_slice(answer.body), answer.json_bytes);
        Ok(decoded.map_err(|error| format!("what cannot be read: {error}"))?.outputs)
    }

    /// Tells the server of shared memory; else what it said.
    pub(crate) async fn register(
        &mut self,
        name: &str,
        key: &str,
        size_bytes: u64,
    ) -> Result<(), String> {
        let path = format!("/v2/systemsharedmemory/region/{}/register", escaped(name));
        let body = serde_json::json!({ "key": key, "offset": 0, "byte_size": size_bytes });
        let request = post(&self.target, &path, None, body.to_string().as_bytes());
        self.answered(&request).await.map(drop)
    }

    /// Has the server forget shared memory; else what it said.
    pub(crate) async fn unregister(&mut self, name: &str) -> Result<(), String> {
        let path = format!("/v2/systemsharedmemory/region/{}/unregister", escaped(name));
        let request = post(&self.target, &path, None, b"");
        self.answered(&request).await.map(drop)
    }

    /// The answer to a request that the server has no objection to; else what it said.
    async fn answered(&mut self, request: &[u8]) -> Result<Answer<'_>, String> {
        let answer = self.connection.exchange(request).await;
        let answer = answer.map_err(|error| format!("nothing: {error}"))?;
        match answer.status {
            200 => Ok(answer),
            _ => Err(rejection_of(&answer).to_string()),
        }
    }

    /// Reads a document; `what` says in words what it is.
    async fn get<T: DeserializeOwned>(&mut self, path: &str, what: &str) -> Result<T, LoadError> {
        let failed = |answer: String| LoadError::Server { what: what.to_string(), answer };
        let request = get(&self.target, path);
        let answer = self.answered(&request).await.map_err(failed)?;
        serde_json::from_slice(answer.body)
            .map_err(|error| failed(format!("what cannot be read: {error}")))
    }
}
