//! Launches of one thread per piece of work, in one dimension.

use crate::launch::{Argument, KernelSource, Launch};

/// Small blocks, so that even little work spreads over the SMs of a partition.
pub(crate) const FLAT_THREADS: u32 = 128;

/// A launch of at least `work` threads; the kernel lets those past the end do nothing.
pub(crate) fn flat_launch(source: KernelSource, work: usize, arguments: Vec<Argument>) -> Launch {
    let blocks = work.div_ceil(FLAT_THREADS as usize);
    let blocks = u32::try_from(blocks).expect("a tensor has at most 2^31 elements");
    Launch {
        source,
        grid: [blocks, 1, 1],
        threads: FLAT_THREADS,
        shared_bytes: 0,
        cluster: [1, 1, 1],
        arguments,
    }
}
