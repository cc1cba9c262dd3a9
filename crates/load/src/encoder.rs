//! Writes requests as a server takes them.

use std::sync::Arc;

use bytes::Bytes;
use weft_protocol::InferRequest;
use weft_protocol::json::TensorForm;

use crate::error::LoadError;
use crate::target::{Protocol, Target};
use crate::{grpc, http};

/// How requests are written for one server.
pub(crate) struct Encoder {
    target: Arc<Target>,
    /// How tensors are written where messages are JSON.
    form: TensorForm,
}

impl Encoder {
    pub(crate) fn new(target: Arc<Target>, form: TensorForm) -> Self {
        Self { target, form }
    }

    /// A request of a model as it is sent.
    pub(crate) fn encode(&self, model: &str, request: InferRequest) -> Result<Bytes, LoadError> {
        let encoded = match self.target.protocol {
            Protocol::Http => http::encode(&self.target, self.form, model, request),
            Protocol::Grpc => grpc::encode(model, request),
        };
        encoded.map_err(|error| LoadError::Model {
            model: model.to_string(),
            problem: error.to_string(),
        })
    }
}
