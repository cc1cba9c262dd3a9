//! What is asked before a run: what the server offers, what its models take.

use std::rc::Rc;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use weft_protocol::InferRequest;
use weft_protocol::grpc::inference::{ModelMetadataResponse, ServerMetadataResponse};
use weft_protocol::json::{TensorForm, encode_request};

use super::connection::Connection;
use super::message::{escaped, get, post, rejection_of};
use crate::declared::DeclaredModel;
use crate::error::LoadError;
use crate::reply::Reply;
use crate::target::Target;

/// A server that was asked what it offers.
pub(crate) struct Client {
    target: Rc<Target>,
    connection: Connection,
    form: TensorForm,
}

impl Client {
    /// Connects, and asks in which form the server takes tensors.
    pub(crate) async fn connect(target: Rc<Target>) -> Result<Self, LoadError> {
        let mut connection = Connection::new(target.clone());
        let refused = |source| LoadError::Connection { address: target.address.clone(), source };
        connection.open().await.map_err(refused)?;
        let mut client = Self { target: target.clone(), connection, form: TensorForm::Json };
        let server: ServerMetadataResponse = client.get("/v2", "what the server offers").await?;
        if server.extensions.iter().any(|extension| extension == "binary_tensor_data") {
            client.form = TensorForm::Binary;
        }
        Ok(client)
    }

    /// What a model takes and gives.
    pub(crate) async fn describe(&mut self, model: &str) -> Result<DeclaredModel, LoadError> {
        let what = format!("what model '{model}' takes");
        let path = format!("/v2/models/{}", escaped(model));
        let metadata: ModelMetadataResponse = self.get(&path, &what).await?;
        DeclaredModel::new(model, metadata)
    }

    /// A request of a model as it is sent.
    pub(crate) fn encode(
        &self,
        model: &str,
        mut request: InferRequest,
    ) -> Result<Bytes, LoadError> {
        request.parameters.binary_outputs = self.form == TensorForm::Binary;
        let body = encode_request(&request, self.form).map_err(|error| LoadError::Model {
            model: model.to_string(),
            problem: error.to_string(),
        })?;
        let path = format!("/v2/models/{}/infer", escaped(model));
        Ok(post(&self.target, &path, body.header_length, &body.body))
    }

    /// Sends a request of a model.
    pub(crate) async fn ask(&mut self, message: &Bytes) -> Reply<'_> {
        self.connection.ask(message).await
    }

    /// Reads a document; `what` says in words what it is.
    async fn get<T: DeserializeOwned>(&mut self, path: &str, what: &str) -> Result<T, LoadError> {
        let failed = |answer: String| LoadError::Server { what: what.to_string(), answer };
        let request = get(&self.target, path);
        let answer = self.connection.exchange(&request).await;
        let answer = answer.map_err(|error| failed(format!("nothing: {error}")))?;
        if answer.status != 200 {
            return Err(failed(rejection_of(&answer).to_string()));
        }
        serde_json::from_slice(answer.body)
            .map_err(|error| failed(format!("what cannot be read: {error}")))
    }
}
