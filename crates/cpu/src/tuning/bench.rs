//! Pinned workers that check candidates and time them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weft_device::{Bench, DeviceError, Trial, TunableOperator, UnitSet};

use super::candidate::Candidate;
use super::control::Control;
use super::operator::CpuOperator;
use super::platform::private_cache_bytes;
use super::sample::Sample;
use super::subject::Subject;
use super::subjects::Subjects;
use super::temperature::{chill, warm};
use super::timeline::{LEAST_RUNS, Timeline};
use crate::{Isa, Pool, PoolError, Priority, SharedOutput, Worker};

/// How often a candidate is timed at most.
const MOST_RUNS: usize = 400;

/// Workers on some cores, and the operands of the operators that were tried last.
pub(super) struct CpuBench {
    pool: Pool,
    control: Control,
    subjects: Subjects,
}

impl CpuBench {
    pub(super) fn new(units: &UnitSet, isa: Isa, priority: Priority) -> Result<Self, DeviceError> {
        let failed = |error: &dyn std::fmt::Display| DeviceError::Failed(error.to_string());
        let pool = Pool::with_priority(units.as_slice(), isa, priority);
        let pool = pool.map_err(|error| failed(&error))?;
        let control = Control::new(&pool, private_cache_bytes()).map_err(|error| failed(&error))?;
        Ok(Self { pool, control, subjects: Subjects::default() })
    }

    /// Does what goes before and after timing on the first worker: it takes its time too, and nobody's but the bench's.
    fn on_a_worker<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, PoolError> {
        let (work, done) = (Mutex::new(Some(work)), Mutex::new(None));
        self.pool.run(|worker| {
            if worker.index() == 0
                && let Some(work) = lock(&work).take()
            {
                *lock(&done) = Some(work());
            }
        })?;
        let done = lock(&done).take();
        Ok(done.expect("a run that has not failed has done all"))
    }

    /// Tries a candidate with the subject's operands; fails with the reason where it cannot compute them.
    fn try_on(
        &self,
        subject: &mut Subject,
        candidate: &Candidate,
        effort: Duration,
    ) -> Result<Trial, String> {
        let isa = self.pool.isa();
        let prepared = self.on_a_worker(|| {
            let weights = subject.pack(candidate, isa)?;
            let kernel = subject.prepare(candidate, &weights)?;
            Ok::<_, String>((weights, kernel))
        });
        let (weights, kernel) = prepared.map_err(|error| error.to_string())??;
        let run = |worker: &Worker,
                   input: &[f32],
                   residual: Option<&[f32]>,
                   output: SharedOutput<f32>| {
            // SAFETY: every worker of the pool's run is here, and the output is no one else's meanwhile.
            unsafe { kernel.run(worker, input, residual, output) }
        };
        Ok(self.try_kernel(subject, &weights.values(), effort, run))
    }

    /// Checks what `kernel` computes from the subject's operands and its own `weights`, and times it.
    fn try_kernel(
        &self,
        subject: &mut Subject,
        weights: &[&[f32]],
        effort: Duration,
        kernel: impl Fn(&Worker, &[f32], Option<&[f32]>, SharedOutput<f32>) + Sync,
    ) -> Trial {
        let Subject { input, residual, output, sample, .. } = subject;
        let (input, residual) = (&**input, residual.as_deref());
        let checked = self.on_a_worker(|| output.fill(f32::NAN)).and_then(|()| {
            let shared = SharedOutput::new(output);
            self.pool.run(|worker| kernel(worker, input, residual, shared))?;
            self.on_a_worker(|| sample.error(output))
        });
        match checked {
            Err(error) => return Trial::Failed(error.to_string()),
            Ok(error) if !Sample::tolerates(error) => return Trial::Wrong { error },
            Ok(_) => {}
        }
        let shared = SharedOutput::new(output);
        let timeline = Mutex::new(Timeline::default());
        let is_enough = AtomicBool::new(false);
        let start = Instant::now();
        let timed = self.pool.run(|worker| {
            while !is_enough.load(Ordering::Relaxed) {
                let control = self.control.run(worker);
                weights.iter().for_each(|weights| chill(worker, weights));
                residual.iter().for_each(|residual| warm(worker, residual));
                warm(worker, input);
                worker.barrier();
                let run_start = Instant::now();
                kernel(worker, input, residual, shared);
                worker.barrier();
                let elapsed = run_start.elapsed();
                if worker.index() == 0 {
                    let mut timeline = lock(&timeline);
                    let count = timeline.push(control, elapsed);
                    let is_over = start.elapsed() >= effort || count >= MOST_RUNS;
                    is_enough.store(count >= LEAST_RUNS && is_over, Ordering::Relaxed);
                }
                worker.barrier();
            }
            let last = self.control.run(worker);
            if worker.index() == 0 {
                lock(&timeline).end(last);
            }
        });
        let timeline = timeline.into_inner().unwrap_or_else(PoisonError::into_inner);
        match timed {
            Ok(()) => Trial::Measured(timeline.measurement(self.control.undisturbed())),
            Err(error) => Trial::Failed(error.to_string()),
        }
    }
}

impl Bench for CpuBench {
    fn try_candidate(
        &mut self,
        operator: &dyn TunableOperator,
        candidate: usize,
        effort: Duration,
    ) -> Result<Trial, DeviceError> {
        let Some(operator) = operator.as_any().downcast_ref::<CpuOperator>() else {
            return Ok(Trial::Failed("the operator is one of another device".into()));
        };
        let Some(candidate) = operator.candidate(candidate) else {
            return Ok(Trial::Failed(format!("there is no candidate {candidate}")));
        };
        if operator.workers() != self.pool.workers() {
            let (wanted, given) = (operator.workers(), self.pool.workers());
            let reason = format!("a candidate for {wanted} cores cannot be timed on {given}");
            return Ok(Trial::Failed(reason));
        }
        let mut subjects = std::mem::take(&mut self.subjects);
        let taken = self.on_a_worker(|| subjects.take(operator.fused()));
        self.subjects = subjects;
        let mut subject = match taken {
            Ok(Ok(subject)) => subject,
            Ok(Err(error)) => return Ok(Trial::Failed(error.to_string())),
            Err(error) => return Ok(Trial::Failed(error.to_string())),
        };
        let trial = self.try_on(&mut subject, candidate, effort);
        self.subjects.put(subject);
        Ok(trial.unwrap_or_else(Trial::Failed))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
