//! Owns the counters by which segments wait for each other.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::pool::{Poisoned, Sleepers};

/// How often a waiting worker looks before it sleeps, so that whoever else wants its core has it.
const SPIN_LIMIT: u32 = 4096;

/// Keeps counters of different segments apart, which different workers watch.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicUsize);

/// For each segment, how many workers have left it in this run.
pub(super) struct Ends {
    left: Vec<Line>,
    is_broken: AtomicBool,
    sleepers: Sleepers,
}

impl Ends {
    pub(super) fn new(segment_count: usize) -> Self {
        Self {
            left: (0..segment_count).map(|_| Line::default()).collect(),
            is_broken: AtomicBool::new(false),
            sleepers: Sleepers::default(),
        }
    }

    /// Prepares for a new run; no worker may be inside one.
    pub(super) fn reset(&self) {
        self.left.iter().for_each(|left| left.0.store(0, Ordering::Relaxed));
        self.is_broken.store(false, Ordering::Relaxed);
    }

    /// Notes that a worker has left a segment. What it wrote there is visible to who waits for the segment.
    pub(super) fn leave(&self, segment: usize) {
        self.left[segment].0.fetch_add(1, Ordering::AcqRel);
        self.sleepers.wake();
    }

    /// Waits until so many workers have left a segment; unwinds if they cannot any more.
    pub(super) fn wait_for(&self, segment: usize, workers: usize) {
        for _ in 0..SPIN_LIMIT {
            if self.has_ended(segment, workers) {
                return;
            }
            std::hint::spin_loop();
        }
        self.sleepers.sleep_until(|| self.has_ended(segment, workers));
    }

    /// Makes every waiting worker leave the run.
    pub(super) fn break_off(&self) {
        self.is_broken.store(true, Ordering::Release);
        self.sleepers.wake();
    }

    fn has_ended(&self, segment: usize, workers: usize) -> bool {
        if self.left[segment].0.load(Ordering::Acquire) >= workers {
            return true;
        }
        if self.is_broken.load(Ordering::Acquire) {
            resume_unwind(Box::new(Poisoned));
        }
        false
    }
}
