//! Numbers that look random and are the same every time.

use xxhash_rust::xxh3::xxh3_64;

use crate::{AlignedBuffer, AllocationError};

/// A generator of numbers.
pub(super) struct Random(u64);

impl Random {
    /// A generator whose numbers depend on `seed`.
    pub(super) fn new(seed: &[u8]) -> Self {
        Self(xxh3_64(seed) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number less than `bound`, which is not zero.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 20) as usize % bound
    }

    /// Values between -1 and 1.
    pub(super) fn values(&mut self, count: usize) -> Result<AlignedBuffer, AllocationError> {
        let mut values = AlignedBuffer::zeroed(count)?;
        for value in values.iter_mut() {
            *value = (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        }
        Ok(values)
    }
}
