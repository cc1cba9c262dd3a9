//! A request for inference and its answer, whatever they were written in.

use std::time::Duration;

use weft_ir::{DataType, Tensor};

/// A client asks for one inference.
#[derive(Clone, Debug, PartialEq)]
pub struct InferRequest {
    /// The client's name for it, given back with the answer; may be empty.
    pub id: String,
    /// How it is to be served.
    pub parameters: RequestParameters,
    /// By name, in the client's order.
    pub inputs: Vec<InputTensor>,
    /// The outputs that are wanted; all of them where none is named.
    pub outputs: Vec<RequestedOutput>,
}

/// How a request is to be served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestParameters {
    /// 1 is the highest; 0 is the model's own.
    pub priority: u64,
    /// From its arrival to when its answer is worth nothing any more.
    pub timeout: Option<Duration>,
    /// Outputs that do not say otherwise are written as bytes (JSON requests only).
    pub binary_outputs: bool,
}

/// One input of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct InputTensor {
    /// The model's input.
    pub name: String,
    /// As the client declares it.
    pub data_type: DataType,
    /// As the client declares it.
    pub shape: Vec<usize>,
    /// Its elements; a tensor is of the declared type and shape.
    pub data: TensorSource,
}

/// Where the elements of an input are.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorSource {
    /// In the message.
    Tensor(Tensor),
    /// In memory that the client shares.
    SharedMemory(RegionRange),
}

/// A part of a region of memory that was registered before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionRange {
    /// The name it was registered by.
    pub region: String,
    /// From the region's beginning.
    pub offset_bytes: usize,
    /// How much of it.
    pub size_bytes: usize,
}

/// One output that is wanted, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedOutput {
    /// The model's output.
    pub name: String,
    /// Written as bytes; `None` where the request does not say (JSON requests only).
    pub is_binary: Option<bool>,
    /// Only the highest so many, as texts `value:index`.
    pub classification: Option<usize>,
    /// Where it is written instead of into the message.
    pub shared_memory: Option<RegionRange>,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct InferResponse {
    /// Who answered.
    pub model_name: String,
    /// Which version of it.
    pub model_version: String,
    /// As in the request.
    pub id: String,
    /// In the order that was asked for.
    pub outputs: Vec<OutputTensor>,
}

/// One output of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputTensor {
    /// The model's output.
    pub name: String,
    /// Its elements.
    pub tensor: Tensor,
    /// Written as bytes (JSON answers only).
    pub is_binary: bool,
    /// Where its elements have been written; the message then carries none.
    pub shared_memory: Option<RegionRange>,
}
