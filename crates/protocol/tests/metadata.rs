//! Documents as clients of Triton read them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use weft_ir::DataType;
use weft_protocol::data_types::config_type;
use weft_protocol::grpc::inference::model_config::SchedulingChoice;
use weft_protocol::grpc::inference::model_instance_group::Kind;
use weft_protocol::grpc::inference::model_metadata_response::TensorMetadata;
use weft_protocol::grpc::inference::model_version_policy::{Latest, PolicyChoice};
use weft_protocol::grpc::inference::repository_index_response::ModelIndex;
use weft_protocol::grpc::inference::system_shared_memory_status_response::RegionStatus;
use weft_protocol::grpc::inference::*;

/// `message` must be written as `document`, and read back from it.
#[track_caller]
fn check<T>(message: T, document: Value)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    assert_eq!(serde_json::to_value(&message).unwrap(), document);
    assert_eq!(serde_json::from_value::<T>(document).unwrap(), message);
}

#[test]
fn metadata_of_a_server_and_of_a_model() {
    check(
        ServerMetadataResponse {
            name: "weft".into(),
            version: "1".into(),
            extensions: vec!["statistics".into()],
        },
        json!({"name": "weft", "version": "1", "extensions": ["statistics"]}),
    );
    let tensor = TensorMetadata { name: "x".into(), datatype: "FP32".into(), shape: vec![-1, 4] };
    check(
        ModelMetadataResponse {
            name: "m".into(),
            versions: vec!["1".into()],
            platform: "weft_onnx".into(),
            inputs: vec![tensor.clone()],
            outputs: vec![tensor],
        },
        json!({
            "name": "m", "versions": ["1"], "platform": "weft_onnx",
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}],
            "outputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}],
        }),
    );
}

#[test]
fn a_configuration_names_types_and_kinds_and_flattens_choices() {
    let latest = PolicyChoice::Latest(Latest { num_versions: 1 });
    let batching = ModelDynamicBatching { max_queue_delay_microseconds: 100, ..Default::default() };
    let parameter = ModelParameter { string_value: "50".into() };
    let config = ModelConfig {
        name: "m".into(),
        platform: "weft_onnx".into(),
        backend: "weft".into(),
        version_policy: Some(ModelVersionPolicy { policy_choice: Some(latest) }),
        max_batch_size: 8,
        input: vec![ModelInput {
            name: "x".into(),
            data_type: config_type(DataType::String).into(),
            dims: vec![16],
            ..Default::default()
        }],
        output: vec![ModelOutput {
            name: "y".into(),
            data_type: config_type(DataType::F32).into(),
            dims: vec![-1],
            ..Default::default()
        }],
        scheduling_choice: Some(SchedulingChoice::DynamicBatching(batching)),
        instance_group: vec![ModelInstanceGroup {
            name: "m_0".into(),
            kind: Kind::Cpu.into(),
            count: 1,
            gpus: vec![],
        }],
        parameters: [("slo_ms".to_string(), parameter)].into(),
        ..Default::default()
    };
    check(
        config,
        json!({
            "name": "m", "platform": "weft_onnx", "backend": "weft", "runtime": "",
            "version_policy": {"latest": {"num_versions": 1}},
            "max_batch_size": 8,
            "input": [{
                "name": "x", "data_type": "TYPE_STRING", "format": "FORMAT_NONE", "dims": [16],
                "is_shape_tensor": false, "allow_ragged_batch": false, "optional": false,
            }],
            "output": [{
                "name": "y", "data_type": "TYPE_FP32", "dims": [-1], "label_filename": "",
                "is_shape_tensor": false,
            }],
            "dynamic_batching": {
                "preferred_batch_size": [], "max_queue_delay_microseconds": 100,
                "preserve_ordering": false, "priority_levels": 0, "default_priority_level": 0,
                "priority_queue_policy": {},
            },
            "instance_group": [{"name": "m_0", "kind": "KIND_CPU", "count": 1, "gpus": []}],
            "default_model_filename": "",
            "parameters": {"slo_ms": {"string_value": "50"}},
        }),
    );
    check(ModelConfig::default(), serde_json::to_value(ModelConfig::default()).unwrap());
    let wrong = json!({"input": [{"name": "x", "data_type": "FP32"}]});
    let problem = serde_json::from_value::<ModelConfig>(wrong).unwrap_err().to_string();
    assert!(problem.contains("'FP32' is not one of its values"), "{problem}");
}

#[test]
fn statistics_that_are_absent_are_zero() {
    let message = ModelStatisticsResponse {
        model_stats: vec![ModelStatistics {
            name: "m".into(),
            inference_count: 7,
            inference_stats: Some(InferStatistics {
                success: Some(StatisticDuration { count: 7, ns: 1 << 60 }),
                ..Default::default()
            }),
            batch_stats: vec![InferBatchStatistics { batch_size: 4, ..Default::default() }],
            ..Default::default()
        }],
    };
    let zero = json!({"count": 0, "ns": 0});
    assert_eq!(
        serde_json::to_value(&message).unwrap(),
        json!({"model_stats": [{
            "name": "m", "version": "", "last_inference": 0, "inference_count": 7,
            "execution_count": 0,
            "inference_stats": {
                "success": {"count": 7, "ns": 1u64 << 60}, "fail": zero, "queue": zero,
                "compute_input": zero, "compute_infer": zero, "compute_output": zero,
                "cache_hit": zero, "cache_miss": zero,
            },
            "batch_stats": [{
                "batch_size": 4, "compute_input": zero, "compute_infer": zero,
                "compute_output": zero,
            }],
            "memory_usage": [], "response_stats": {},
        }]}),
    );
}

#[test]
fn lists_of_models_and_regions_are_bare() {
    let model = ModelIndex {
        name: "m".into(),
        version: "1".into(),
        state: "READY".into(),
        reason: String::new(),
    };
    check(
        RepositoryIndexResponse { models: vec![model] },
        json!([{"name": "m", "version": "1", "state": "READY", "reason": ""}]),
    );
    let region =
        RegionStatus { name: "r".into(), key: "/k".into(), offset: 8, byte_size: u64::MAX };
    check(
        SystemSharedMemoryStatusResponse { regions: [("r".to_string(), region)].into() },
        json!([{"name": "r", "key": "/k", "offset": 8, "byte_size": u64::MAX}]),
    );
    check(CudaSharedMemoryStatusResponse::default(), json!([]));
}
