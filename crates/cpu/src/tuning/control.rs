//! Work of known duration that shows whether something else uses the same core or memory.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::random::Random;
use super::temperature::chill_alone;
use crate::gemm::{
    Epilogue, PackError, PackedB, PanelWidth, Rows, TileLimits, WeightMatrix, WeightOrder, gemm,
};
use crate::{AlignedBuffer, AllocationError, Pool, PoolError, SharedOutput, Worker};

/// The product that shows whether the core is shared.
const ROWS: usize = 48;
const DEPTH: usize = 256;
const COLUMNS: usize = 64;

/// How many values are copied to show whether the memory is shared.
const COPIED_VALUES: usize = 64 * 1024;

/// How much is moved to empty a core's own caches, as a multiple of what they hold.
const CACHE_MULTIPLE: usize = 4;

/// How often it runs undisturbed to find how long it takes.
const CALIBRATION_RUNS: usize = 24;

/// A small product, and a copy of values that are in no cache, so that it takes as long whatever ran before.
pub(super) struct Control {
    left: AlignedBuffer,
    right: PackedB,
    /// One part for each worker, so that they share nothing.
    parts: Vec<Mutex<Part>>,
    undisturbed: Duration,
}

struct Part {
    source: AlignedBuffer,
    target: AlignedBuffer,
    output: AlignedBuffer,
    /// What the caches are filled with instead of what was there.
    ballast: AlignedBuffer,
}

/// Why there is no control.
#[derive(Debug, thiserror::Error)]
pub(super) enum ControlError {
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    #[error(transparent)]
    Pack(#[from] PackError),
    #[error(transparent)]
    Pool(#[from] PoolError),
}

impl Control {
    /// The control for a pool whose workers have caches of their own of `cache_bytes`. The fastest of several runs counts as
    /// undisturbed.
    pub(super) fn new(pool: &Pool, cache_bytes: usize) -> Result<Self, ControlError> {
        let mut random = Random::new(b"control");
        let left = random.values(ROWS * DEPTH)?;
        let right = random.values(DEPTH * COLUMNS)?;
        let order = WeightOrder::KByN;
        let right = WeightMatrix { data: &right, depth: DEPTH, columns: COLUMNS, order };
        let right = PackedB::pack(pool.isa(), PanelWidth::Full, &right)?;
        let part = || -> Result<Mutex<Part>, AllocationError> {
            Ok(Mutex::new(Part {
                source: AlignedBuffer::zeroed(COPIED_VALUES)?,
                target: AlignedBuffer::zeroed(COPIED_VALUES)?,
                output: AlignedBuffer::zeroed(ROWS * COLUMNS)?,
                ballast: AlignedBuffer::zeroed(CACHE_MULTIPLE * cache_bytes / size_of::<f32>())?,
            }))
        };
        let parts = (0..pool.workers()).map(|_| part()).collect::<Result<_, _>>()?;
        let mut control = Self { left, right, parts, undisturbed: Duration::MAX };
        let fastest = Mutex::new(Duration::MAX);
        pool.run(|worker| {
            for _ in 0..CALIBRATION_RUNS {
                let elapsed = control.run(worker);
                let mut fastest = fastest.lock().unwrap_or_else(PoisonError::into_inner);
                *fastest = elapsed.min(*fastest);
            }
        })?;
        control.undisturbed = fastest.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(control)
    }

    /// How long it takes when nothing else runs.
    pub(super) fn undisturbed(&self) -> Duration {
        self.undisturbed
    }

    /// Empties the workers' own caches, then runs on every worker; all call this alike, and are told how long the slowest of
    /// them took.
    pub(super) fn run(&self, worker: &Worker) -> Duration {
        let mut part = self.parts[worker.index()].lock().unwrap_or_else(PoisonError::into_inner);
        let Part { source, target, output, ballast } = &mut *part;
        let half = ballast.len() / 2;
        let (from, to) = ballast.split_at_mut(half);
        to[..half].copy_from_slice(from);
        chill_alone(source);
        chill_alone(target);
        let alone = Worker::solo(worker.isa());
        let rows = Rows::new(&self.left, ROWS, DEPTH, DEPTH);
        let (output, epilogue) = (SharedOutput::new(output), Epilogue::default());
        let limits = TileLimits::default();
        worker.barrier();
        let start = Instant::now();
        target.copy_from_slice(source);
        // SAFETY: the worker is alone, and its output is its own.
        unsafe { gemm(&alone, &rows, &self.right, &limits, output, COLUMNS, &epilogue) };
        worker.barrier();
        start.elapsed()
    }
}
