//! The wire formats of KServe v2 (the Open Inference Protocol): JSON, the binary tensor data extension and gRPC, for a
//! server and for its clients.

pub mod data_types;
mod error;
pub mod grpc;
mod infer;
pub mod json;
mod limits;
pub mod metadata;
mod parameters;
mod raw;
mod shape;

pub use error::ProtocolError;
pub use infer::{
    InferRequest, InferResponse, InputTensor, OutputTensor, RegionRange, RequestParameters,
    RequestedOutput, TensorSource,
};
pub use limits::{MAX_RANK, MAX_TENSORS};
pub use raw::{raw_bytes, raw_size_bytes, tensor_from_raw};
