//! The calls of the inference service.

use std::sync::Arc;
use std::time::Duration;

use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};
use weft_protocol::grpc::inference::grpc_inference_service_server::GrpcInferenceService;
use weft_protocol::grpc::inference::model_repository_parameter::ParameterChoice;
use weft_protocol::grpc::inference::*;
use weft_protocol::{InferRequest, ProtocolError};

use super::compression::answered;
use super::deadline;
use super::stream;
use crate::error::ServeError;
use crate::inference::Serving;
use crate::passage::Passage;
use crate::spans::TraceParent;
use crate::tenants::Caller;

/// Answers calls.
#[derive(Clone)]
pub(crate) struct Inference {
    pub(crate) serving: Arc<Serving>,
}

/// Who makes a call.
pub(super) fn caller<T>(request: &Request<T>) -> Caller {
    request.extensions().get().cloned().unwrap_or_default()
}

/// The trace that a call is part of.
fn parent(metadata: &MetadataMap) -> Option<TraceParent> {
    metadata.get(TraceParent::HEADER).and_then(|value| TraceParent::parse(value.as_bytes()))
}

type Answer<T> = Result<Response<T>, Status>;

impl Inference {
    /// One inference, whose client waits for at most so long, as part of a trace.
    pub(super) async fn infer(
        &self,
        caller: &Caller,
        message: ModelInferRequest,
        patience: Option<Duration>,
        parent: Option<TraceParent>,
    ) -> Result<ModelInferResponse, ServeError> {
        let mut passage = self.serving.passage(parent);
        let outcome = self.pass(caller, message, patience, &mut passage).await;
        passage.end(outcome.as_ref().err());
        outcome
    }

    async fn pass(
        &self,
        caller: &Caller,
        message: ModelInferRequest,
        patience: Option<Duration>,
        passage: &mut Passage<'_>,
    ) -> Result<ModelInferResponse, ServeError> {
        if caller.sees(&message.model_name) {
            passage.names(&message.model_name);
        }
        let model = self.serving.model(caller, &message.model_name, &message.model_version).await?;
        passage.found(&model);
        let mut request = InferRequest::from_grpc(message)?;
        let timeout = request.parameters.timeout;
        request.parameters.timeout = timeout.into_iter().chain(patience).min();
        Ok(self.serving.infer(caller, &model, request, passage).await?.into_grpc()?)
    }
}

#[tonic::async_trait]
impl GrpcInferenceService for Inference {
    type ModelStreamInferStream = ReceiverStream<Result<ModelStreamInferResponse, Status>>;

    async fn model_infer(&self, request: Request<ModelInferRequest>) -> Answer<ModelInferResponse> {
        let patience = deadline::of(request.metadata());
        let caller = caller(&request);
        let (metadata, _, message) = request.into_parts();
        let parent = parent(&metadata);
        Ok(answered(&metadata, self.infer(&caller, message, patience, parent).await?))
    }

    async fn model_stream_infer(
        &self,
        request: Request<Streaming<ModelInferRequest>>,
    ) -> Answer<Self::ModelStreamInferStream> {
        let (metadata, _, requests) = request.into_parts();
        let credentials = metadata.clone().into_headers();
        let parent = parent(&metadata);
        Ok(answered(&metadata, stream::answers(self.clone(), credentials, requests, parent)))
    }

    async fn server_live(&self, _: Request<ServerLiveRequest>) -> Answer<ServerLiveResponse> {
        Ok(Response::new(ServerLiveResponse { live: true }))
    }

    async fn server_ready(&self, _: Request<ServerReadyRequest>) -> Answer<ServerReadyResponse> {
        Ok(Response::new(ServerReadyResponse { ready: self.serving.is_ready() }))
    }

    async fn model_ready(&self, request: Request<ModelReadyRequest>) -> Answer<ModelReadyResponse> {
        let caller = caller(&request);
        let ModelReadyRequest { name, version } = request.into_inner();
        let ready = self.serving.is_model_ready(&caller, &name, &version);
        Ok(Response::new(ModelReadyResponse { ready }))
    }

    async fn server_metadata(
        &self,
        _: Request<ServerMetadataRequest>,
    ) -> Answer<ServerMetadataResponse> {
        Ok(Response::new(self.serving.server_metadata()))
    }

    async fn model_metadata(
        &self,
        request: Request<ModelMetadataRequest>,
    ) -> Answer<ModelMetadataResponse> {
        let caller = caller(&request);
        let ModelMetadataRequest { name, version } = request.into_inner();
        Ok(Response::new(self.serving.model_metadata(&caller, &name, &version).await?))
    }

    async fn model_config(
        &self,
        request: Request<ModelConfigRequest>,
    ) -> Answer<ModelConfigResponse> {
        let caller = caller(&request);
        let ModelConfigRequest { name, version } = request.into_inner();
        let config = Some(self.serving.model_config(&caller, &name, &version).await?);
        Ok(Response::new(ModelConfigResponse { config }))
    }

    async fn model_statistics(
        &self,
        request: Request<ModelStatisticsRequest>,
    ) -> Answer<ModelStatisticsResponse> {
        let caller = caller(&request);
        let ModelStatisticsRequest { name, version } = request.into_inner();
        Ok(Response::new(self.serving.model_statistics(&caller, &name, &version)?))
    }

    async fn repository_index(
        &self,
        request: Request<RepositoryIndexRequest>,
    ) -> Answer<RepositoryIndexResponse> {
        let (caller, only_ready) = (caller(&request), request.get_ref().ready);
        Ok(Response::new(self.serving.clone().repository_index(&caller, only_ready).await?))
    }

    async fn repository_model_load(
        &self,
        request: Request<RepositoryModelLoadRequest>,
    ) -> Answer<RepositoryModelLoadResponse> {
        let message = request.into_inner();
        let mut config = None;
        for (name, parameter) in message.parameters {
            match (name.as_str(), parameter.parameter_choice) {
                ("config", Some(ParameterChoice::StringParam(text))) => config = Some(text),
                _ => {
                    let what = format!("the parameter '{name}' of a request to load");
                    return Err(ServeError::from(ProtocolError::Unsupported(what)).into());
                }
            }
        }
        self.serving.clone().load_model(message.model_name, config).await?;
        Ok(Response::new(RepositoryModelLoadResponse {}))
    }

    async fn repository_model_unload(
        &self,
        request: Request<RepositoryModelUnloadRequest>,
    ) -> Answer<RepositoryModelUnloadResponse> {
        self.serving.clone().unload_model(request.into_inner().model_name).await?;
        Ok(Response::new(RepositoryModelUnloadResponse {}))
    }

    async fn system_shared_memory_status(
        &self,
        request: Request<SystemSharedMemoryStatusRequest>,
    ) -> Answer<SystemSharedMemoryStatusResponse> {
        let caller = caller(&request);
        Ok(Response::new(self.serving.system_regions(&caller, &request.get_ref().name)?))
    }

    async fn system_shared_memory_register(
        &self,
        request: Request<SystemSharedMemoryRegisterRequest>,
    ) -> Answer<SystemSharedMemoryRegisterResponse> {
        let caller = caller(&request);
        let SystemSharedMemoryRegisterRequest { name, key, offset, byte_size } = request.get_ref();
        let regions = self.serving.regions.of(&caller);
        regions.register(name, key, *offset, *byte_size).map_err(ServeError::from)?;
        Ok(Response::new(SystemSharedMemoryRegisterResponse {}))
    }

    async fn system_shared_memory_unregister(
        &self,
        request: Request<SystemSharedMemoryUnregisterRequest>,
    ) -> Answer<SystemSharedMemoryUnregisterResponse> {
        self.serving.regions.of(&caller(&request)).unregister(&request.get_ref().name);
        Ok(Response::new(SystemSharedMemoryUnregisterResponse {}))
    }

    async fn cuda_shared_memory_status(
        &self,
        request: Request<CudaSharedMemoryStatusRequest>,
    ) -> Answer<CudaSharedMemoryStatusResponse> {
        crate::shared_memory::no_cuda_region(&request.into_inner().name)?;
        Ok(Response::new(CudaSharedMemoryStatusResponse::default()))
    }

    async fn cuda_shared_memory_register(
        &self,
        _: Request<CudaSharedMemoryRegisterRequest>,
    ) -> Answer<CudaSharedMemoryRegisterResponse> {
        Err(ServeError::no_cuda_shared_memory().into())
    }

    async fn cuda_shared_memory_unregister(
        &self,
        _: Request<CudaSharedMemoryUnregisterRequest>,
    ) -> Answer<CudaSharedMemoryUnregisterResponse> {
        Ok(Response::new(CudaSharedMemoryUnregisterResponse {}))
    }

    async fn trace_setting(&self, _: Request<TraceSettingRequest>) -> Answer<TraceSettingResponse> {
        Err(ServeError::no_such_settings("trace").into())
    }

    async fn log_settings(&self, _: Request<LogSettingsRequest>) -> Answer<LogSettingsResponse> {
        Err(ServeError::no_such_settings("log").into())
    }
}
