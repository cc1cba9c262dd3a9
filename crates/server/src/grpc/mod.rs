//! KServe v2 over gRPC.

mod arrival;
mod compression;
mod deadline;
mod service;
mod stream;

use std::convert::Infallible;
use std::sync::Arc;

use ::http::{Request, Response};
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::codegen::Service;
use weft_protocol::grpc::inference::grpc_inference_service_server::GrpcInferenceServiceServer;

use self::arrival::ArrivingBody;
use self::service::Inference;
use crate::inference::Serving;
use crate::limits::Limits;

/// What answers every call.
pub(crate) type GrpcService = GrpcInferenceServiceServer<Inference>;

/// The call that stays open for as long as the client likes.
const STREAM: &str = "/inference.GRPCInferenceService/ModelStreamInfer";

/// Answers one call.
pub(crate) async fn call(
    mut service: GrpcService,
    request: Request<Incoming>,
    limits: &Limits,
) -> Result<Response<Body>, Infallible> {
    let allowed = (request.uri().path() != STREAM).then_some(limits.body_arrival);
    let request = request.map(|body| ArrivingBody::new(body, allowed));
    service.call(request).await
}

/// The service, with the server's limits.
pub(crate) fn grpc_service(serving: Arc<Serving>) -> GrpcService {
    let limit_bytes = serving.limits.body_bytes;
    GrpcInferenceServiceServer::new(Inference { serving })
        .max_decoding_message_size(limit_bytes)
        .max_encoding_message_size(usize::MAX)
        .accept_compressed(CompressionEncoding::Gzip)
        .send_compressed(CompressionEncoding::Gzip)
}
