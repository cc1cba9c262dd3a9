//! Owns the meeting point of a run's workers, and the counter from which they claim tasks between two meetings.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::gate::Gate;
use super::sleepers::Sleepers;

/// How often a waiting worker looks before it sleeps: who is late by more has lost its core to someone, who may need this
/// one too.
const SPIN_LIMIT: u32 = 4096;

/// The panic payload with which workers leave a run that another worker has broken.
pub(crate) struct Poisoned;

/// Keeps what is written by every worker apart from what is only watched.
#[repr(align(128))]
#[derive(Default)]
struct Line<T>(T);

/// A reusable barrier for a fixed number of workers.
pub(super) struct Barrier {
    count: usize,
    arrived: Line<AtomicUsize>,
    next_task: Line<AtomicUsize>,
    generation: Line<AtomicUsize>,
    left: AtomicUsize,
    poisoned: AtomicBool,
    sleepers: Sleepers,
}

impl Barrier {
    pub(super) fn new(count: usize) -> Self {
        Self {
            count,
            arrived: Line::default(),
            next_task: Line::default(),
            generation: Line::default(),
            left: AtomicUsize::new(0),
            poisoned: AtomicBool::new(false),
            sleepers: Sleepers::default(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Prepares for a new run; no worker may be inside one.
    pub(super) fn reset(&self) {
        self.arrived.0.store(0, Ordering::Relaxed);
        self.next_task.0.store(0, Ordering::Relaxed);
        self.left.store(0, Ordering::Relaxed);
        self.poisoned.store(false, Ordering::Relaxed);
    }

    /// The next unclaimed task since the last meeting.
    pub(super) fn claim(&self) -> usize {
        self.next_task.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits for all workers, asleep while the gate is closed; unwinds if one of them cannot come any more.
    pub(super) fn wait(&self, gate: &Gate) {
        if self.count == 1 {
            return;
        }
        let generation = self.generation.0.load(Ordering::Acquire);
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.count {
            // Everyone is here, so nobody claims tasks or arrives while the counters go back to zero.
            self.arrived.0.store(0, Ordering::Relaxed);
            self.next_task.0.store(0, Ordering::Relaxed);
            self.generation.0.store(generation.wrapping_add(1), Ordering::Release);
            self.sleepers.wake();
            return;
        }
        for _ in 0..SPIN_LIMIT {
            if self.is_over(generation) {
                return;
            }
            gate.pass();
            std::hint::spin_loop();
        }
        self.sleepers.sleep_until(|| self.is_over(generation));
    }

    /// Whether the meeting that began at `generation` has happened; unwinds if it never will.
    fn is_over(&self, generation: usize) -> bool {
        if self.generation.0.load(Ordering::Acquire) != generation {
            return true;
        }
        if self.is_broken(generation) {
            resume_unwind(Box::new(Poisoned));
        }
        false
    }

    /// Whether the meeting that began at `generation` can never happen.
    fn is_broken(&self, generation: usize) -> bool {
        if self.poisoned.load(Ordering::Acquire) {
            return true;
        }
        // A worker that left without meeting the others will not come. One that left after the meeting is fine, and
        // then the new generation is visible here, because it left later.
        let mismatched = self.left.load(Ordering::Acquire) > 0
            && self.generation.0.load(Ordering::Acquire) == generation;
        assert!(!mismatched, "a worker left the run while another waits for it at a barrier");
        false
    }

    /// Makes every waiting worker leave.
    pub(super) fn poison(&self) {
        self.poisoned.store(true, Ordering::Release);
        self.sleepers.wake();
    }

    /// Notes that a worker has left the run.
    pub(super) fn leave(&self) {
        self.left.fetch_add(1, Ordering::AcqRel);
        self.sleepers.wake();
    }
}
