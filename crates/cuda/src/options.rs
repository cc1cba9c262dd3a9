//! How a GPU is used.

use crate::Precision;

/// What is decided when a GPU is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudaOptions {
    /// What models run at where nothing else is asked for.
    pub precision: Precision,
    /// SMs of one unit: 8, or 2 where no kernel needs clusters of blocks.
    pub sms_per_unit: u32,
    /// How the kernel of each node is chosen.
    pub choice: Choice,
    /// Whether a measured choice is among the kernels of cuBLASLt and cuDNN too, where these are installed.
    pub uses_libraries: bool,
}

impl Default for CudaOptions {
    fn default() -> Self {
        Self {
            precision: Precision::default(),
            sms_per_unit: 8,
            choice: Choice::default(),
            uses_libraries: true,
        }
    }
}

/// How one of a node's candidates is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The one that is expected to be fastest.
    #[default]
    Estimated,
    /// The one that was fastest when each was run on the partition, which takes longer to prepare.
    Measured,
    /// The first whose name starts with this text, NVIDIA's libraries among them, and where there is none the one that
    /// is expected to be fastest: for tests that hold each candidate to the reference.
    Named(&'static str),
}
