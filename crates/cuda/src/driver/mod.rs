//! The calls of CUDA's driver that the device needs, as handles that keep alive what they use.

mod arena;
mod context;
mod copy;
pub(crate) mod error;
mod event;
mod graph;
mod green;
mod launch;
mod memory;
mod module;
mod partition;
mod pool;
mod startup;
mod stream;
mod tensor_map;

pub use arena::GrowableBuffer;
pub use context::Context;
pub use copy::{copy_on_device, copy_to_device, copy_to_host, fill};
pub use error::{CompileFailure, CudaError, FailedCall, Version};
pub use event::Event;
pub use graph::{GraphExec, capture};
pub use green::{Entered, GreenContext};
pub use launch::{LaunchShape, launch};
pub use memory::{DeviceBuffer, PinnedBuffer};
pub use module::Kernel;
pub use partition::{PartitionContext, UnitTable};
pub use pool::{MAX_PARTITIONS_KEPT, PartitionPool};
pub use stream::{Stream, StreamPriority};
pub use tensor_map::encode_tensor_map;
