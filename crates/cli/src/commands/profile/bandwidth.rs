//! What a CPU's memory moves at most.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::device::OpenDevice;

/// What each core reads: far more than any cache holds for it.
const BYTES_PER_CORE: usize = 128 << 20;
/// Whatever disturbs a round only makes it slower, so the best of a few counts.
const ROUNDS: usize = 3;

/// Reads large arrays on all cores at once.
pub(super) fn measured_gb_per_s(device: &OpenDevice) -> Result<f64> {
    let OpenDevice::Cpu(device) = device else {
        bail!("the bandwidth of a GPU's memory is not measured here: give it by --bandwidth");
    };
    let cores = device.units().len();
    let arrays = vec![vec![1u64; BYTES_PER_CORE / size_of::<u64>()]; cores];
    let round = || {
        let start = Instant::now();
        thread::scope(|scope| {
            for array in &arrays {
                scope.spawn(|| black_box(array.iter().fold(0u64, |sum, n| sum.wrapping_add(*n))));
            }
        });
        (cores * BYTES_PER_CORE) as f64 / start.elapsed().as_secs_f64() * 1e-9
    };
    Ok((0..ROUNDS).map(|_| round()).fold(0.0, f64::max))
}
