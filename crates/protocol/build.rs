//! Generates the messages, the server and the client of the inference service from its description.

/// Messages that have a form in JSON too, with what lies inside them.
const DOCUMENTS: &[&str] = &[
    ".inference.ServerMetadataResponse",
    ".inference.ModelMetadataResponse",
    ".inference.ModelConfig",
    ".inference.ModelVersionPolicy",
    ".inference.ModelInput",
    ".inference.ModelOutput",
    ".inference.ModelTensorReshape",
    ".inference.ModelInstanceGroup",
    ".inference.ModelDynamicBatching",
    ".inference.ModelQueuePolicy",
    ".inference.ModelParameter",
    ".inference.ModelTransactionPolicy",
    ".inference.ModelResponseCache",
    ".inference.ModelStatisticsResponse",
    ".inference.ModelStatistics",
    ".inference.InferStatistics",
    ".inference.InferResponseStatistics",
    ".inference.InferBatchStatistics",
    ".inference.StatisticDuration",
    ".inference.MemoryUsage",
    ".inference.RepositoryIndexResponse",
    ".inference.SystemSharedMemoryStatusResponse",
    ".inference.CudaSharedMemoryStatusResponse",
];

/// Messages whose form in JSON is that of their only field.
const TRANSPARENT: &[&str] = &[
    "RepositoryIndexResponse",
    "SystemSharedMemoryStatusResponse",
    "CudaSharedMemoryStatusResponse",
];

/// Fields, and what makes their form in JSON.
const FIELDS: &[(&str, &str)] = &[
    ("ModelInput.data_type", "with = \"crate::metadata::data_type\""),
    ("ModelInput.format", "with = \"crate::metadata::format\""),
    ("ModelOutput.data_type", "with = \"crate::metadata::data_type\""),
    ("ModelInstanceGroup.kind", "with = \"crate::metadata::kind\""),
    ("ModelQueuePolicy.timeout_action", "with = \"crate::metadata::timeout_action\""),
    ("ModelConfig.scheduling_choice", "flatten"),
    ("ModelVersionPolicy.policy_choice", "flatten"),
    ("SystemSharedMemoryStatusResponse.regions", "with = \"crate::metadata::named\""),
    ("CudaSharedMemoryStatusResponse.regions", "with = \"crate::metadata::named\""),
];

/// Statistics that are zero where they are absent.
const ZERO: &[&str] = &[
    ".inference.InferStatistics",
    ".inference.InferResponseStatistics",
    "InferBatchStatistics.compute_input",
    "InferBatchStatistics.compute_infer",
    "InferBatchStatistics.compute_output",
    "ModelStatistics.inference_stats",
];

/// Messages that are left out of a document where they are absent.
const OPTIONAL: &[&str] = &[
    "ModelInput.reshape",
    "ModelOutput.reshape",
    "ModelConfig.version_policy",
    "ModelConfig.model_transaction_policy",
    "ModelConfig.response_cache",
    "ModelDynamicBatching.default_queue_policy",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(["grpc_service.proto"], ["proto"])?;
    let mut builder = tonic_prost_build::configure()
        // Connecting is left to whoever has a transport.
        .build_transport(false)
        .codec_path("crate::grpc::codec::MessageCodec")
        // Tensors stay slices of the message that they came in.
        .bytes(".")
        // Rare and large, so that a message of many empty inputs is not blown up when it is read.
        .boxed("InferInputTensor.contents")
        .boxed("InferOutputTensor.contents")
        // A document is written in the same order every time.
        .btree_map(".");
    let derive = "#[derive(serde::Serialize, serde::Deserialize)]";
    for path in DOCUMENTS {
        builder = builder.message_attribute(path, format!("{derive} #[serde(default)]"));
        builder =
            builder.enum_attribute(path, format!("{derive} #[serde(rename_all = \"snake_case\")]"));
    }
    for path in TRANSPARENT {
        builder = builder.message_attribute(path, "#[serde(transparent)]");
    }
    for (path, form) in FIELDS {
        builder = builder.field_attribute(path, format!("#[serde({form})]"));
    }
    for path in OPTIONAL {
        builder =
            builder.field_attribute(path, "#[serde(skip_serializing_if = \"Option::is_none\")]");
    }
    for path in ZERO {
        let form = "#[serde(serialize_with = \"crate::metadata::or_default\")]";
        builder = builder.field_attribute(path, form);
    }
    builder.compile_fds(descriptors)?;
    Ok(())
}
