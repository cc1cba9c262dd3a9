//! NVIDIA's Multi-Process Service: processes share a GPU at the same time, each in its share.

mod control;
mod holders;
mod private;
mod shared;

pub(crate) use private::PrivateMps;
pub(crate) use shared::{FOLDER_VARIABLE, SharedMps};

/// Where a process looks for the service.
pub(crate) const PIPE_VARIABLE: &str = "CUDA_MPS_PIPE_DIRECTORY";
/// The share of a GPU's threads that a process may use, in percent.
pub(crate) const SHARE_VARIABLE: &str = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";
/// Whose work goes first: 0 is normal, 1 below normal.
pub(crate) const PRIORITY_VARIABLE: &str = "CUDA_MPS_CLIENT_PRIORITY";
