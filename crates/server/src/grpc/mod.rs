//! KServe v2 over gRPC.

mod access;
mod arrival;
mod compression;
mod deadline;
mod health;
mod service;
mod stream;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use ::http::{Request, Response};
use hyper::body::Incoming;
use tonic::Status;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::codegen::Service;
use tonic_health::pb::health_server::HealthServer;
use weft_protocol::grpc::inference::grpc_inference_service_server::GrpcInferenceServiceServer;

use self::arrival::ArrivingBody;
use self::health::ServerHealth;
use self::service::Inference;
use crate::error::ServeError;
use crate::inference::Serving;
use crate::tenants::Permit;

/// What answers every call.
#[derive(Clone)]
pub(crate) struct GrpcService {
    inference: GrpcInferenceServiceServer<Inference>,
    health: HealthServer<ServerHealth>,
}

/// How the paths of the health service's calls begin.
const HEALTH: &str = "/grpc.health.v1.Health/";

/// The call for one inference.
const INFER: &str = "/inference.GRPCInferenceService/ModelInfer";

/// The call that stays open for as long as the client likes.
const STREAM: &str = "/inference.GRPCInferenceService/ModelStreamInfer";

/// Answers one call.
pub(crate) async fn call(
    mut service: GrpcService,
    mut request: Request<Incoming>,
    serving: &Serving,
) -> Result<Response<Body>, Infallible> {
    let _permit = match let_in(&mut request, serving) {
        Ok(permit) => permit,
        Err(error) => {
            if request.uri().path() == INFER {
                serving.passage(None).end(Some(&error));
            }
            return Ok(Status::from(error).into_http());
        }
    };
    let allowed = (request.uri().path() != STREAM).then_some(serving.limits.body_arrival);
    let request = request.map(|body| ArrivingBody::new(body, allowed));
    if request.uri().path().starts_with(HEALTH) {
        service.health.call(request).await
    } else {
        service.inference.call(request).await
    }
}

/// Finds out who calls, and leaves that with the request. An inference is counted before its message is read, so that what
/// is over a limit costs no more than its head; those of a stream are counted as they come.
fn let_in(
    request: &mut Request<Incoming>,
    serving: &Serving,
) -> Result<Option<Permit>, ServeError> {
    let path = request.uri().path();
    let caller = serving.tenants.let_in(access::of(path), request.headers())?;
    let permit = (path == INFER).then(|| caller.admit(Instant::now())).transpose()?;
    request.extensions_mut().insert(caller);
    Ok(permit)
}

/// The services, with the server's limits.
pub(crate) fn grpc_service(serving: Arc<Serving>) -> GrpcService {
    let limit_bytes = serving.limits.body_bytes;
    let health = HealthServer::new(ServerHealth { serving: serving.clone() });
    let inference = GrpcInferenceServiceServer::new(Inference { serving })
        .max_decoding_message_size(limit_bytes)
        .max_encoding_message_size(usize::MAX)
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Deflate)
        .send_compressed(CompressionEncoding::Gzip)
        .send_compressed(CompressionEncoding::Deflate);
    GrpcService { inference, health }
}
