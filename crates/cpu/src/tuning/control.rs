//! Work of known duration that shows whether something else uses the same core, cache or memory.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::random::Random;
use crate::gemm::{
    Epilogue, PackedB, PanelWidth, Rows, TileLimits, WeightMatrix, WeightOrder, gemm,
};
use crate::{AlignedBuffer, AllocationError, Isa, Pool, PoolError, SharedOutput, Worker};

/// The product that shows whether the core is shared.
const ROWS: usize = 48;
const DEPTH: usize = 256;
const COLUMNS: usize = 64;

/// How much is copied, as a multiple of what a core's own caches hold.
const CACHE_MULTIPLE: usize = 4;

/// How often it runs undisturbed to find how long it takes.
const CALIBRATION_RUNS: usize = 24;

/// A small product, and a copy of more than a core's own caches hold: what was in them is elsewhere afterwards.
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
}

impl Control {
    /// The control for a pool whose workers have private caches of `cache_bytes`. The fastest of several runs counts as
    /// undisturbed.
    pub(super) fn new(pool: &Pool, cache_bytes: usize) -> Result<Self, ControlError> {
        let isa = pool.isa();
        let mut random = Random::new(b"control");
        let left = random.values(ROWS * DEPTH)?;
        let right = pack(&random.values(DEPTH * COLUMNS)?, isa)?;
        let elements = CACHE_MULTIPLE * cache_bytes / size_of::<f32>();
        let part = || -> Result<Mutex<Part>, AllocationError> {
            Ok(Mutex::new(Part {
                source: AlignedBuffer::zeroed(elements)?,
                target: AlignedBuffer::zeroed(elements)?,
                output: AlignedBuffer::zeroed(ROWS * COLUMNS)?,
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

    /// Runs it on every worker; all call this alike, and are told how long the slowest of them took.
    pub(super) fn run(&self, worker: &Worker) -> Duration {
        let mut part = self.parts[worker.index()].lock().unwrap_or_else(PoisonError::into_inner);
        let Part { source, target, output } = &mut *part;
        let alone = Worker::solo(worker.isa());
        let rows = Rows::new(&self.left, ROWS, DEPTH, DEPTH);
        worker.barrier();
        let start = Instant::now();
        target.copy_from_slice(source);
        let (output, epilogue) = (SharedOutput::new(output), Epilogue::default());
        let limits = TileLimits::default();
        // SAFETY: the worker is alone, and its output is its own.
        unsafe { gemm(&alone, &rows, &self.right, &limits, output, COLUMNS, &epilogue) };
        worker.barrier();
        start.elapsed()
    }
}

fn pack(data: &[f32], isa: Isa) -> Result<PackedB, crate::gemm::PackError> {
    let matrix = WeightMatrix { data, depth: DEPTH, columns: COLUMNS, order: WeightOrder::KByN };
    PackedB::pack(isa, PanelWidth::Full, &matrix)
}

/// Why there is no control.
#[derive(Debug, thiserror::Error)]
pub(super) enum ControlError {
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    #[error(transparent)]
    Pack(#[from] crate::gemm::PackError),
    #[error(transparent)]
    Pool(#[from] PoolError),
}
