//! What is asked of a server beside inference, whatever the protocol.

use std::sync::Arc;

use bytes::Bytes;
use weft_protocol::OutputTensor;
use weft_protocol::json::TensorForm;

use crate::declared::DeclaredModel;
use crate::encoder::Encoder;
use crate::error::LoadError;
use crate::reply::{OutputPlace, Reply};
use crate::target::{Protocol, Target};
use crate::{grpc, http};

/// A server that can be asked.
pub(crate) struct Client {
    target: Arc<Target>,
    wire: Wire,
}

enum Wire {
    Http(http::Client),
    Grpc(grpc::Client),
}

impl Client {
    pub(crate) async fn connect(target: Arc<Target>) -> Result<Self, LoadError> {
        let wire = match target.protocol {
            Protocol::Http => Wire::Http(http::Client::connect(target.clone()).await?),
            Protocol::Grpc => Wire::Grpc(grpc::Client::connect(target.clone()).await?),
        };
        Ok(Self { target, wire })
    }

    pub(crate) fn target(&self) -> Arc<Target> {
        self.target.clone()
    }

    /// How requests are written for this server.
    pub(crate) fn encoder(&self) -> Encoder {
        let form = match &self.wire {
            Wire::Http(client) => client.form(),
            Wire::Grpc(_) => TensorForm::Binary,
        };
        Encoder::new(self.target.clone(), form)
    }

    /// What the server offers beyond the protocol.
    pub(crate) async fn extensions(&self) -> Result<Vec<String>, LoadError> {
        match &self.wire {
            Wire::Http(client) => Ok(client.extensions().to_vec()),
            Wire::Grpc(client) => client.extensions().await,
        }
    }

    /// What a model takes and gives.
    pub(crate) async fn describe(&mut self, model: &str) -> Result<DeclaredModel, LoadError> {
        match &mut self.wire {
            Wire::Http(client) => client.describe(model).await,
            Wire::Grpc(client) => client.describe(model).await,
        }
    }

    /// Sends a request of a model.
    pub(crate) async fn ask(&mut self, message: &Bytes, outputs: OutputPlace) -> Reply<'_> {
        match &mut self.wire {
            Wire::Http(client) => client.ask(message, outputs).await,
            Wire::Grpc(client) => client.ask(message, outputs).await,
        }
    }

    /// Sends a request of a model, and reads the outputs in its answer; else what the server said.
    pub(crate) async fn infer(&mut self, message: &Bytes) -> Result<Vec<OutputTensor>, String> {
        match &mut self.wire {
            Wire::Http(client) => client.infer(message).await,
            Wire::Grpc(client) => client.infer(message).await,
        }
    }

    /// Tells the server of shared memory; else what it said.
    pub(crate) async fn register(
        &mut self,
        name: &str,
        key: &str,
        size_bytes: u64,
    ) -> Result<(), String> {
        match &mut self.wire {
            Wire::Http(client) => client.register(name, key, size_bytes).await,
            Wire::Grpc(client) => client.register(name, key, size_bytes).await,
        }
    }

    /// Has the server forget shared memory; else what it said.
    pub(crate) async fn unregister(&mut self, name: &str) -> Result<(), String> {
        match &mut self.wire {
            Wire::Http(client) => client.unregister(name).await,
            Wire::Grpc(client) => client.unregister(name).await,
        }
    }
}
