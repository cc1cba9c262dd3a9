//! Which SMs blocks run on: `note_sm.cu`.

use crate::launch::KernelSource;

const TEXT: &str = include_str!("../../kernels/note_sm.cu");

/// The kernel: the address of a word for each block, and how many microseconds a block stays.
pub(crate) fn source() -> KernelSource {
    KernelSource::new("note_sm.cu", TEXT, "note_sm", Vec::new())
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    vec![source()]
}
