//! The CPU device: a unit is a core, a partition is a worker pool pinned to a set of cores.

mod activation;
mod aligned;
mod choices;
pub mod conv;
mod device;
pub mod gemm;
mod group;
mod isa;
pub mod kernels;
mod lane;
mod mix;
mod model;
mod partition;
mod peak;
mod plan;
mod pool;
mod shared_output;
pub mod simd;
mod tuning;
mod weights;

pub use activation::Activation;
pub use aligned::{AlignedBuffer, AllocationError};
pub use device::CpuDevice;
pub use isa::{Isa, IsaError, SimdTask};
pub use peak::peak_gflops;
pub use pool::{Pool, PoolError, Priority, Scratch, Worker};
pub use shared_output::SharedOutput;
