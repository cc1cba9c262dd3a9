//! The health service that orchestrators ask over gRPC.

use std::sync::Arc;

use tokio_stream::{Once, once};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::service::caller;
use crate::inference::Serving;

/// What the inference service is called.
const INFERENCE: &str = "inference.GRPCInferenceService";

/// Says whether the server, or one of its models by its name, takes in requests.
pub(crate) struct ServerHealth {
    pub(crate) serving: Arc<Serving>,
}

impl ServerHealth {
    fn status(&self, asked: &Request<HealthCheckRequest>) -> Result<HealthCheckResponse, Status> {
        let is_ready = match asked.get_ref().service.as_str() {
            "" | INFERENCE => self.serving.is_ready(),
            model => {
                let caller = caller(asked);
                caller.check_sees(model)?;
                let is_ready = self.serving.is_model_ready(&caller, model, "");
                if !is_ready {
                    self.serving.models.find(model, "")?;
                }
                is_ready
            }
        };
        let status = if is_ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        Ok(HealthCheckResponse { status: status.into() })
    }
}

#[tonic::async_trait]
impl Health for ServerHealth {
    type WatchStream = Once<Result<HealthCheckResponse, Status>>;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        self.status(&request).map(Response::new)
    }

    /// Says it once: what comes later is told to those who ask again.
    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        Ok(Response::new(once(self.status(&request))))
    }
}
