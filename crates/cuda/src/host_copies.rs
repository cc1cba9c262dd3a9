//! Threads that copy requests between callers' memory and what the GPU copies from: one thread alone takes longer for the
//! images of a group than the GPU takes to compute them.

use std::thread::available_parallelism;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// So many bytes are copied by the calling thread: others take some microseconds to begin.
const BRIEF_BYTES: usize = 512 << 10;

/// More would wait for the same memory.
const MOST_THREADS: usize = 8;

/// The threads, where there are cores for several.
pub(crate) struct HostCopies(Option<ThreadPool>);

impl HostCopies {
    pub(crate) fn start() -> Self {
        let cores = available_parallelism().map_or(1, |cores| cores.get());
        let count = (cores / 2).min(MOST_THREADS);
        let name = |number| format!("weft-copy-{number}");
        let pool = || ThreadPoolBuilder::new().num_threads(count).thread_name(name).build().ok();
        Self((count > 1).then(pool).flatten())
    }

    /// Does some work on each of the items, which altogether copies so many bytes. What comes of them is in their order.
    pub(crate) fn each<I: Send, T: Send>(
        &self,
        size_bytes: usize,
        items: Vec<I>,
        work: impl Fn(I) -> T + Send + Sync,
    ) -> Vec<T> {
        match &self.0 {
            Some(pool) if size_bytes > BRIEF_BYTES && items.len() > 1 => {
                pool.install(|| items.into_par_iter().map(work).collect())
            }
            _ => items.into_iter().map(work).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_of_items_is_in_their_order_whoever_copies_them() {
        let pool = ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for copies in [HostCopies(None), HostCopies(Some(pool)), HostCopies::start()] {
            for size_bytes in [0, BRIEF_BYTES * 2] {
                let doubled = copies.each(size_bytes, (0..100).collect(), |number: u32| 2 * number);
                assert_eq!(doubled, (0..100).map(|number| 2 * number).collect::<Vec<_>>());
            }
        }
    }
}
