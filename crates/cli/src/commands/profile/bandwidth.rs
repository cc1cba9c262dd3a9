//! What a device's memory moves at most.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use anyhow::{Result, ensure};
use weft_cpu::CpuDevice;

use crate::device::OpenDevice;

/// What each core reads: far more than any cache holds for it.
const BYTES_PER_CORE: usize = 128 << 20;
/// Whatever disturbs a round only makes it slower, so the best of a few counts.
const ROUNDS: usize = 3;
/// No memory that models run from is slower, and none is faster; what lies outside is a slip of units.
const PLAUSIBLE_GB_PER_S: std::ops::RangeInclusive<f64> = 0.1..=100_000.0;

/// How a bandwidth is measured, in words.
pub(super) fn in_words(device: &OpenDevice) -> &'static str {
    match device {
        OpenDevice::Cpu(_) => "measured by reading large arrays on all units",
        OpenDevice::Cuda(_) => "measured by copying large buffers, bytes read and written counted",
    }
}

/// Bytes per second, as given in GB/s or else as measured.
pub(crate) fn bytes_per_s(given_gb_per_s: Option<f64>, device: &OpenDevice) -> Result<f64> {
    let gb_per_s = match (given_gb_per_s, device) {
        (Some(given), _) => given,
        (None, OpenDevice::Cpu(device)) => measured_gb_per_s(device),
        (None, OpenDevice::Cuda(device)) => device.measure_bandwidth()? * 1e-9,
    };
    plausible(gb_per_s)
}

fn plausible(gb_per_s: f64) -> Result<f64> {
    ensure!(
        PLAUSIBLE_GB_PER_S.contains(&gb_per_s),
        "a bandwidth of {gb_per_s} GB/s is no memory's; give what it is by --bandwidth"
    );
    Ok((gb_per_s * 1e9).round())
}

/// Reads large arrays on all cores at once.
fn measured_gb_per_s(device: &CpuDevice) -> f64 {
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
    (0..ROUNDS).map(|_| round()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::plausible;

    #[test]
    fn what_no_memory_moves_is_refused() {
        assert_eq!(plausible(4800.0).unwrap(), 4.8e12);
        for nonsense in [0.0, -5.0, f64::NAN, f64::INFINITY, 4.8e12] {
            let error = plausible(nonsense).unwrap_err().to_string();
            assert!(error.contains("--bandwidth"), "{error}");
        }
    }
}
