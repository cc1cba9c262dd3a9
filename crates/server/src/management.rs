//! Everything that is asked of a server beside inference, as messages that each transport writes in its own way.

use std::sync::Arc;

use weft_protocol::data_types::{config_type, wire_name};
use weft_protocol::grpc::inference::model_config::SchedulingChoice;
use weft_protocol::grpc::inference::model_metadata_response::TensorMetadata;
use weft_protocol::grpc::inference::repository_index_response::ModelIndex;
use weft_protocol::grpc::inference::system_shared_memory_status_response::RegionStatus;
use weft_protocol::grpc::inference::{
    InferBatchStatistics, InferStatistics, ModelConfig, ModelDynamicBatching, ModelInput,
    ModelMetadataResponse, ModelOutput, ModelStatistics, ModelStatisticsResponse,
    RepositoryIndexResponse, ServerMetadataResponse, StatisticDuration,
    SystemSharedMemoryStatusResponse,
};

use crate::error::ServeError;
use crate::inference::Serving;
use crate::models::{ModelEntry, TensorSpec};
use crate::repository::{IndexEntry, ModelState};
use crate::statistics::Total;
use crate::tenants::Caller;

/// What models are written in.
const PLATFORM: &str = "weft_onnx";

/// The extensions of the protocol that the server offers.
const EXTENSIONS: &[&str] = &[
    "classification",
    "model_configuration",
    "model_repository",
    "parameters",
    "schedule_policy",
    "statistics",
    "system_shared_memory",
    "binary_tensor_data",
];

impl Serving {
    /// True while requests are taken in.
    pub(crate) fn is_ready(&self) -> bool {
        self.door.is_open() && self.repository.is_ready()
    }

    /// True while requests of a caller for a model are taken in.
    pub(crate) fn is_model_ready(&self, caller: &Caller, name: &str, version: &str) -> bool {
        // One that is asleep answers as soon as it is asked.
        let found = self.models.find(name, version);
        self.is_ready() && caller.sees(name) && matches!(found, Ok(_) | Err(ServeError::Asleep(_)))
    }

    pub(crate) fn server_metadata(&self) -> ServerMetadataResponse {
        ServerMetadataResponse {
            name: "weft".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            extensions: EXTENSIONS.iter().map(ToString::to_string).collect(),
        }
    }

    pub(crate) async fn model_metadata(
        &self,
        caller: &Caller,
        name: &str,
        version: &str,
    ) -> Result<ModelMetadataResponse, ServeError> {
        let model = self.model(caller, name, version).await?;
        let tensor = |spec: &TensorSpec| TensorMetadata {
            name: spec.name.clone(),
            datatype: wire_name(spec.data_type).unwrap_or_default().into(),
            shape: spec.wire_shape(),
        };
        let versions = self.models.versions(name);
        Ok(ModelMetadataResponse {
            name: model.name.clone(),
            versions: versions.iter().map(|entry| entry.version_text.clone()).collect(),
            platform: PLATFORM.into(),
            inputs: model.signature.inputs.iter().map(tensor).collect(),
            outputs: model.signature.outputs.iter().map(tensor).collect(),
        })
    }

    pub(crate) async fn model_config(
        &self,
        caller: &Caller,
        name: &str,
        version: &str,
    ) -> Result<ModelConfig, ServeError> {
        let model = self.model(caller, name, version).await?;
        let signature = &model.signature;
        // Where there is a batch it is left out of the dimensions.
        let skipped = usize::from(signature.max_batch_size > 0);
        let dims = |spec: &TensorSpec| spec.wire_shape().split_off(skipped);
        let input = |spec: &TensorSpec| ModelInput {
            name: spec.name.clone(),
            data_type: config_type(spec.data_type).into(),
            dims: dims(spec),
            ..Default::default()
        };
        let output = |spec: &TensorSpec| ModelOutput {
            name: spec.name.clone(),
            data_type: config_type(spec.data_type).into(),
            dims: dims(spec),
            ..Default::default()
        };
        let batching = SchedulingChoice::DynamicBatching(ModelDynamicBatching::default());
        Ok(ModelConfig {
            name: model.name.clone(),
            platform: PLATFORM.into(),
            backend: "weft".into(),
            max_batch_size: i32::try_from(signature.max_batch_size).unwrap_or(i32::MAX),
            input: signature.inputs.iter().map(input).collect(),
            output: signature.outputs.iter().map(output).collect(),
            scheduling_choice: (signature.max_batch_size > 1).then_some(batching),
            ..Default::default()
        })
    }

    /// Of one model, or of all that are there for the caller where the name is empty.
    pub(crate) fn model_statistics(
        &self,
        caller: &Caller,
        name: &str,
        version: &str,
    ) -> Result<ModelStatisticsResponse, ServeError> {
        let models = match (name, version) {
            ("", _) => {
                let mut all = self.models.all();
                all.retain(|model| caller.sees(&model.name));
                all
            }
            (name, "") => {
                caller.check_sees(name)?;
                self.models.find(name, "")?;
                self.models.versions(name)
            }
            (name, version) => {
                caller.check_sees(name)?;
                vec![self.models.find(name, version)?]
            }
        };
        let model_stats = models.iter().map(|model| statistics(model)).collect();
        Ok(ModelStatisticsResponse { model_stats })
    }

    pub(crate) async fn repository_index(
        self: Arc<Self>,
        caller: &Caller,
        only_ready: bool,
    ) -> Result<RepositoryIndexResponse, ServeError> {
        let entries = self.beside(|serving| Ok(serving.repository.index())).await?;
        let entries =
            entries.into_iter().filter(|entry| entry.state == ModelState::Ready || !only_ready);
        let entries = entries.filter(|entry| caller.sees(&entry.name));
        let entry = |entry: IndexEntry| ModelIndex {
            name: entry.name,
            version: entry.version,
            state: if entry.state == ModelState::Ready { "READY" } else { "UNAVAILABLE" }.into(),
            reason: entry.reason,
        };
        Ok(RepositoryIndexResponse { models: entries.map(entry).collect() })
    }

    pub(crate) async fn load_model(
        self: Arc<Self>,
        name: String,
        config: Option<String>,
    ) -> Result<(), ServeError> {
        self.beside(move |serving| serving.repository.load(&name, config.as_deref())).await
    }

    pub(crate) async fn unload_model(self: Arc<Self>, name: String) -> Result<(), ServeError> {
        self.beside(move |serving| serving.repository.unload(&name)).await
    }

    /// Of one region, or of all the caller's where the name is empty.
    pub(crate) fn system_regions(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<SystemSharedMemoryStatusResponse, ServeError> {
        let regions = self.regions.of(caller).list(name)?.into_iter().map(|(name, region)| {
            let status = RegionStatus {
                name: name.clone(),
                key: region.key,
                offset: region.offset_bytes,
                byte_size: region.size_bytes,
            };
            (name, status)
        });
        Ok(SystemSharedMemoryStatusResponse { regions: regions.collect() })
    }

    /// Does what takes long on a thread of its own.
    async fn beside<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&Serving) -> Result<T, ServeError> + Send + 'static,
    ) -> Result<T, ServeError> {
        let done = tokio::task::spawn_blocking(move || work(&self)).await;
        done.unwrap_or(Err(ServeError::Stopping))
    }
}

fn statistics(model: &ModelEntry) -> ModelStatistics {
    let counts = model.statistics.counts();
    let duration = |total: &Total| {
        let ns = u64::try_from(total.time.as_nanos()).unwrap_or(u64::MAX);
        Some(StatisticDuration { count: total.count, ns })
    };
    // Inputs and outputs are used where they lie, so that putting them in place takes no time of its own.
    let in_place = |total: &Total| Some(StatisticDuration { count: total.count, ns: 0 });
    let batches = counts.executions.iter().map(|(&rows, total)| InferBatchStatistics {
        batch_size: rows.into(),
        compute_input: in_place(total),
        compute_infer: duration(total),
        compute_output: in_place(total),
    });
    ModelStatistics {
        name: model.name.clone(),
        version: model.version_text.clone(),
        last_inference: counts.last_ms,
        inference_count: counts.rows,
        execution_count: counts.execution_count(),
        inference_stats: Some(InferStatistics {
            success: duration(&counts.succeeded),
            fail: duration(&counts.failed),
            queue: duration(&counts.queued),
            compute_input: in_place(&counts.ran),
            compute_infer: duration(&counts.ran),
            compute_output: in_place(&counts.ran),
            cache_hit: Some(StatisticDuration::default()),
            cache_miss: Some(StatisticDuration::default()),
        }),
        batch_stats: batches.collect(),
        ..Default::default()
    }
}
