//! Numbers for traces and spans that nobody else has.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// Gives numbers out, from a beginning that differs from process to process.
#[derive(Debug)]
pub(super) struct Ids {
    seed: u64,
    next: AtomicU64,
}

impl Ids {
    pub(super) fn new() -> Self {
        // The standard library seeds its hashers from the operating system.
        Self { seed: RandomState::new().hash_one(std::process::id()), next: AtomicU64::new(0) }
    }

    /// For a trace; never 0, which means none.
    pub(super) fn trace(&self) -> u128 {
        xxh3_128_with_seed(&self.number(), self.seed).max(1)
    }

    /// For a span; never 0, which means none.
    pub(super) fn span(&self) -> u64 {
        xxh3_64_with_seed(&self.number(), self.seed).max(1)
    }

    fn number(&self) -> [u8; 8] {
        self.next.fetch_add(1, Ordering::Relaxed).to_le_bytes()
    }
}
