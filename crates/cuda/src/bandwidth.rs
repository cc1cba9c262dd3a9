//! What a GPU's memory moves at most: large buffers are copied on the GPU itself.

use std::sync::Arc;

use crate::driver::{Context, CudaError, DeviceBuffer, Event, Stream, copy_on_device};

/// Copies that are timed together, so that what lies between two does not count.
const COPIES: usize = 4;
/// Whatever disturbs a round only makes it slower, so the best of a few counts.
const ROUNDS: usize = 5;
/// A buffer is this many times as large as the L2 cache, so that next to nothing of it is found there.
const CACHES_PER_BUFFER: usize = 16;
/// The smallest buffer: a copy of it takes long beside what starting it takes.
const LEAST_BYTES: usize = 256 << 20;

/// Bytes per second, read and written.
pub(crate) fn measure(context: &Arc<Context>) -> Result<f64, CudaError> {
    let size_bytes = buffer_bytes(context.chip().l2_bytes as usize);
    let from = DeviceBuffer::zeroed(context, size_bytes)?;
    let to = DeviceBuffer::zeroed(context, size_bytes)?;
    let stream = Stream::new(context)?;
    let (start, end) = (Event::with_timing(&stream)?, Event::with_timing(&stream)?);
    let round_us = || {
        start.record(&stream)?;
        for _ in 0..COPIES {
            // SAFETY: both buffers have this size, lie apart, and live until the copies have ended, below.
            unsafe { copy_on_device(&stream, to.address(), from.address(), size_bytes) }?;
        }
        end.record(&stream)?;
        end.synchronize()?;
        end.elapsed_us_since(&start)
    };
    let rounds = (0..ROUNDS).map(|_| round_us()).collect::<Result<Vec<f64>, CudaError>>();
    // Where a round failed, earlier copies may still run in the buffers that are about to go.
    stream.synchronize()?;
    rate(COPIES * size_bytes, &rounds?)
}

fn buffer_bytes(l2_bytes: usize) -> usize {
    l2_bytes.saturating_mul(CACHES_PER_BUFFER).max(LEAST_BYTES)
}

/// The best rate of rounds that each copied so many bytes: they were read, and written.
fn rate(copied_bytes: usize, rounds_us: &[f64]) -> Result<f64, CudaError> {
    let fastest_us = rounds_us.iter().copied().fold(f64::INFINITY, f64::min);
    if !(fastest_us > 0.0 && fastest_us.is_finite()) {
        let refusal = format!("copies of {copied_bytes} bytes took {fastest_us} us: no bandwidth");
        return Err(CudaError::Refused(refusal));
    }
    Ok(2.0 * copied_bytes as f64 / (fastest_us * 1e-6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_copied_are_read_and_written() {
        let rate = rate(1_000_000, &[20.0, 10.0, 40.0]).unwrap();
        assert!((rate - 2e11).abs() < 1.0, "{rate}");
    }

    #[test]
    fn times_that_cannot_be_are_no_bandwidth() {
        for rounds in [&[][..], &[0.0], &[-1.0, 5.0], &[f64::NAN], &[f64::INFINITY]] {
            assert!(rate(1_000_000, rounds).is_err(), "{rounds:?}");
        }
    }

    #[test]
    fn buffers_do_not_fit_into_the_cache() {
        assert_eq!(buffer_bytes(50 << 20), 800 << 20);
        assert_eq!(buffer_bytes(0), LEAST_BYTES);
    }
}
