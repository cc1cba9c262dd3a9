//! What the driver is told.

use std::sync::Arc;

use weft_device::{Buckets, DeviceError, Partition};
use weft_ir::Value;
use weft_scheduler::{LaunchId, LayoutFound, ModelId, PartitionId, Span};

use crate::error::InferError;

/// Called once with what came of a request.
pub type Reply = Box<dyn FnOnce(Result<Vec<Value>, InferError>) + Send>;

/// A request that waits.
pub(crate) struct Call {
    pub(crate) inputs: Vec<Value>,
    pub(crate) reply: Reply,
}

/// A partition with models that are ready on it.
pub(crate) struct Ready {
    pub(crate) partition: Arc<dyn Partition>,
    pub(crate) models: Vec<(ModelId, Arc<Buckets>)>,
}

pub(crate) enum Message {
    Arrived { model: ModelId, timeout: Option<Span>, call: Call },
    Finished(LaunchId),
    Prepared(PartitionId, Result<Ready, DeviceError>),
    Planned(Box<LayoutFound>),
    Stop,
}
