//! Owns worker pools: one pinned thread per core, which run a closure together and sleep in between.

mod barrier;
mod gate;
mod priority;
mod sleepers;
mod team;
mod worker;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{JoinHandle, ThreadId};

use crate::Isa;
use barrier::Barrier;
pub(crate) use barrier::Poisoned;
use gate::Gate;
pub use priority::Priority;
pub(crate) use sleepers::Sleepers;
pub(crate) use team::Team;
pub use worker::{Scratch, Worker};

/// The largest core number the operating system's affinity masks can name.
const CORE_LIMIT: usize = 1024;

/// Why a pool could not be made, or why a run did not finish.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// A pool needs at least one core.
    #[error("a pool needs at least one core")]
    Empty,
    /// A core was named twice; two workers on one core would only wait for each other.
    #[error("core {core} is named twice in one pool")]
    Duplicate {
        /// The core.
        core: usize,
    },
    /// The operating system refused to pin a thread, so the partition would not be one.
    #[error(
        "cannot pin a thread to core {core}: the machine has no such core, or this process may not use it"
    )]
    Pin {
        /// The core.
        core: usize,
    },
    /// The operating system refused to let a thread wait behind all others.
    #[error("cannot give a worker thread the lowest priority")]
    Priority,
    /// The operating system refused to start a thread.
    #[error("cannot start a worker thread: {reason}")]
    Spawn {
        /// What it said.
        reason: String,
    },
    /// A worker panicked; the run ended early on all workers and its results are unspecified.
    #[error("worker {worker} panicked: {message}")]
    Panicked {
        /// The worker that panicked first.
        worker: usize,
        /// What it said.
        message: String,
    },
    /// A worker of the pool started a run on its own pool, which would wait for itself.
    #[error("a worker cannot start a run on its own pool")]
    Nested,
}

/// Threads pinned to cores, one each.
pub struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    one_run: Mutex<()>,
    /// The core of each worker, if it has one.
    places: Vec<Option<usize>>,
    isa: Isa,
    priority: Priority,
    /// Of the pool that sleeps while this one runs.
    interrupted: Option<Arc<Shared>>,
}

/// What the workers of one pool and its callers share.
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    done: Condvar,
    barrier: Barrier,
    /// Closed while the pool is interrupted.
    gate: Gate,
}

#[derive(Default)]
struct State {
    /// Counts runs, so that a worker never takes the same one twice.
    epoch: u64,
    job: Option<Job>,
    unfinished: usize,
    failure: Option<PoolError>,
    stop: bool,
}

/// The closure of the current run, its lifetime erased.
#[derive(Clone, Copy)]
struct Job(*const (dyn Fn(&Worker) + Sync));

// SAFETY: the closure is `Sync`, and `Pool::run` keeps it alive until every worker has left it.
unsafe impl Send for Job {}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock, so the state is whole even if the flag is set.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    /// One worker per core, pinned to it.
    pub fn new(cores: &[usize], isa: Isa) -> Result<Self, PoolError> {
        Self::with_priority(cores, isa, Priority::Normal)
    }

    /// One worker per core, pinned to it.
    pub fn with_priority(cores: &[usize], isa: Isa, priority: Priority) -> Result<Self, PoolError> {
        for (index, &core) in cores.iter().enumerate() {
            if cores[..index].contains(&core) {
                return Err(PoolError::Duplicate { core });
            }
            if core >= CORE_LIMIT {
                return Err(PoolError::Pin { core });
            }
        }
        Self::start(cores.iter().map(|&core| Some(core)).collect(), isa, priority, None)
    }

    /// `count` workers that run wherever the operating system puts them; for tests and one-off work.
    pub fn unpinned(count: usize, isa: Isa) -> Result<Self, PoolError> {
        Self::start(vec![None; count], isa, Priority::Normal, None)
    }

    /// As many workers on the same cores, whose runs interrupt those of this pool: while one is under way, the workers of
    /// this pool sleep from their next task or barrier on.
    pub fn interrupter(&self) -> Result<Self, PoolError> {
        let interrupted = Some(self.shared.clone());
        let priority = self.priority.of_interrupter();
        Self::start(self.places.clone(), self.isa, priority, interrupted)
    }

    fn start(
        places: Vec<Option<usize>>,
        isa: Isa,
        priority: Priority,
        interrupted: Option<Arc<Shared>>,
    ) -> Result<Self, PoolError> {
        if places.is_empty() {
            return Err(PoolError::Empty);
        }
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            wake: Condvar::new(),
            done: Condvar::new(),
            barrier: Barrier::new(places.len()),
            gate: Gate::open(),
        });
        // From here on, dropping the pool stops and joins whatever has started.
        let mut pool = Self {
            shared: shared.clone(),
            threads: Vec::with_capacity(places.len()),
            one_run: Mutex::new(()),
            places,
            isa,
            priority,
            interrupted,
        };
        let (report, reports) = mpsc::channel();
        for (index, place) in pool.places.iter().copied().enumerate() {
            let shared = shared.clone();
            let report = report.clone();
            let name = match (place, &pool.interrupted) {
                (Some(core), None) => format!("weft-core-{core}"),
                (Some(core), Some(_)) => format!("weft-urgent-{core}"),
                (None, _) => format!("weft-worker-{index}"),
            };
            let body = move || {
                let outcome = settle(place, priority);
                let is_settled = outcome.is_ok();
                // The maker waits until every worker has reported and dropped its end.
                let _ = report.send(outcome);
                drop(report);
                if is_settled {
                    serve(&shared, index, isa);
                }
            };
            let thread = std::thread::Builder::new()
                .name(name)
                .spawn(body)
                .map_err(|error| PoolError::Spawn { reason: error.to_string() })?;
            pool.threads.push(thread);
        }
        drop(report);
        reports.into_iter().collect::<Result<(), PoolError>>()?;
        Ok(pool)
    }

    /// Runs `body` on the calling thread, as the only worker there is.
    pub fn run_alone(isa: Isa, body: impl Fn(&Worker)) -> Result<(), PoolError> {
        let outcome = catch_unwind(AssertUnwindSafe(|| body(&Worker::solo(isa))));
        outcome.map_err(|payload| PoolError::Panicked {
            worker: 0,
            message: message_of(payload.as_ref()),
        })
    }

    /// How many workers the pool has.
    pub fn workers(&self) -> usize {
        self.threads.len()
    }

    /// The instruction set its workers use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Runs `body` on every worker and waits until all have returned. Runs of one pool follow one another.
    ///
    /// If a worker panics, the others leave at their next barrier, and the error tells what happened.
    pub fn run(&self, body: impl Fn(&Worker) + Sync) -> Result<(), PoolError> {
        let caller: ThreadId = std::thread::current().id();
        if self.threads.iter().any(|thread| thread.thread().id() == caller) {
            return Err(PoolError::Nested);
        }
        let _one_run = self.one_run.lock().unwrap_or_else(PoisonError::into_inner);
        let _interruption = self.interrupted.as_ref().map(|other| other.gate.close());
        let body: &(dyn Fn(&Worker) + Sync) = &body;
        // SAFETY: only the lifetime changes; this function does not return before `unfinished` is zero, and then no
        // worker uses the closure any more.
        let job = Job(unsafe {
            std::mem::transmute::<*const (dyn Fn(&Worker) + Sync), *const (dyn Fn(&Worker) + Sync)>(
                body,
            )
        });
        self.shared.barrier.reset();
        let mut state = self.shared.state();
        state.epoch += 1;
        state.job = Some(job);
        state.unfinished = self.threads.len();
        self.shared.wake.notify_all();
        while state.unfinished > 0 {
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.job = None;
        state.failure.take().map_or(Ok(()), Err)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.state().stop = true;
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            // A worker catches the panics of its runs, so there is nothing to learn from the result.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Pool")
            .field("workers", &self.workers())
            .field("isa", &self.isa)
            .finish()
    }
}

/// Puts the calling thread on its core, with its priority.
fn settle(place: Option<usize>, priority: Priority) -> Result<(), PoolError> {
    if let Some(core) = place
        && !core_affinity::set_for_current(core_affinity::CoreId { id: core })
    {
        return Err(PoolError::Pin { core });
    }
    if priority.apply_to_current() { Ok(()) } else { Err(PoolError::Priority) }
}

/// The life of a worker: sleep until there is a run, take part in it, tell the caller, and again.
fn serve(shared: &Shared, index: usize, isa: Isa) {
    let worker = Worker::new(index, isa, &shared.barrier, &shared.gate);
    let mut last_epoch = 0;
    loop {
        let job = {
            let mut state = shared.state();
            loop {
                if state.stop {
                    return;
                }
                if let Some(job) = state.job.filter(|_| state.epoch != last_epoch) {
                    last_epoch = state.epoch;
                    break job;
                }
                state = shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        };
        // SAFETY: `Pool::run` keeps the closure alive until this worker has decremented `unfinished` below.
        let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { (*job.0)(&worker) }));
        if outcome.is_err() {
            shared.barrier.poison();
        }
        shared.barrier.leave();
        let mut state = shared.state();
        if let Err(payload) = outcome
            && !payload.is::<Poisoned>()
            && state.failure.is_none()
        {
            state.failure =
                Some(PoolError::Panicked { worker: index, message: message_of(payload.as_ref()) });
        }
        state.unfinished -= 1;
        if state.unfinished == 0 {
            shared.done.notify_one();
        }
    }
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    if let Some(message) = payload.downcast_ref::<&str>() {
        (*message).to_owned()
    } else if let Some(message) = payload.downcast_ref::<String>() {
        message.clone()
    } else {
        "a panic without a message".to_owned()
    }
}

#[cfg(test)]
mod tests;
