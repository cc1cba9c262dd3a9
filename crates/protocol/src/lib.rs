//! The wire formats of KServe v2 (the Open Inference Protocol): JSON, the binary tensor data extension and gRPC, for a
//! server and for its clients.

mod error;
mod infer;

pub use error::ProtocolError;
pub use infer::{
    InferRequest, InferResponse, InputTensor, OutputTensor, RegionRange, RequestParameters,
    RequestedOutput, TensorSource,
};
