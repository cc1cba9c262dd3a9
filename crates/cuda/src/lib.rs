//! NVIDIA GPUs as devices: a unit is a group of SMs, a partition is a green context.
//!
//! From the bottom up: `library` finds CUDA's libraries, `driver` wraps the calls that are needed, `compiler` turns
//! kernel templates into machine code, `kernels` says how each kernel is launched, `plan` makes an execution plan of a
//! model, and the rest is the device as [`weft_device`] describes it.

mod chip;
pub mod compiler;
pub mod driver;
mod kernels;
mod launch;
pub mod library;
mod plan;
mod precision;
mod units;
mod weights;

pub use chip::Chip;
pub use kernels::sample_sources;
pub use launch::{
    Argument, Candidate, DeviceWeights, KernelSource, Launch, TensorMap, WeightMemory,
};
pub use precision::{Precision, Storage};
pub use units::UnitLayout;
pub use weights::{NoMemory, WeightStore};
