//! Memory filled with random numbers: `random.cu`.

use super::flat::flat_launch;
use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str = include_str!("../../kernels/random.cu");

/// The launch that writes `count` numbers between -1 and 1.
pub(crate) fn random_launch(storage: Storage, count: usize, to: Argument, seed: u32) -> Launch {
    let seed = Argument::Bytes(seed.to_ne_bytes().to_vec());
    flat_launch(source(storage), count, vec![to, Argument::u32(count), seed])
}

fn source(storage: Storage) -> KernelSource {
    let defines = vec![("STORAGE", storage.cuda_name().to_string())];
    KernelSource::new("random.cu", TEXT, "random_numbers", defines)
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    [Storage::F16, Storage::Bf16, Storage::F32].map(source).to_vec()
}
