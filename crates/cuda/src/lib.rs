//! NVIDIA GPUs as devices: a unit is a group of SMs, a partition is a green context.
//!
//! From the bottom up: `library` finds CUDA's libraries, `driver` wraps the calls that are needed, `compiler` turns
//! kernel templates into machine code, `kernels` says how each kernel is launched, `plan` makes an execution plan of a
//! model, and the rest is the device as [`weft_device`] describes it.

mod bandwidth;
mod bound;
mod bound_work;
mod chip;
mod choosing;
pub mod compiler;
mod device;
pub mod driver;
mod executable;
mod gpu;
mod group;
mod host_copies;
mod io_memory;
mod kernels;
mod known_plans;
mod launch;
pub mod library;
mod library_call;
mod measure;
mod mix;
mod model;
mod options;
mod partition;
mod plan;
mod precision;
mod preparation;
mod preview;
mod reach;
mod shared_launch;
mod side_by_side;
pub mod superkernel;
mod timing;
mod tuning;
mod units;
mod vendor;
mod weights;

pub use chip::Chip;
pub use device::CudaDevice;
pub use executable::CudaExecutable;
pub use group::CudaGroup;
pub use kernels::sample_sources;
pub use launch::{
    Argument, Candidate, Copied, CopiedWindows, DeviceWeights, Entries, KernelSource, Launch,
    TensorMap, WeightMemory,
};
pub use model::CudaModel;
pub use options::{Choice, CudaOptions};
pub use partition::CudaPartition;
pub use precision::{Precision, Storage};
pub use preview::preview;
pub use reach::Reach;
pub use side_by_side::SideBySide;
pub use units::UnitLayout;
pub use weights::{NoMemory, WeightStore};
