//! The CPU device: a unit is a core, a partition is a worker pool pinned to a set of cores.

mod aligned;
mod isa;
mod pool;
pub mod simd;

pub use aligned::{AlignedBuffer, AllocationError};
pub use isa::{Isa, IsaError, SimdTask};
pub use pool::{Pool, PoolError, Scratch, Worker};
