//! Pinned workers that check candidates and time them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
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
use crate::{Isa, Pool, SharedOutput, Worker};

/// How often a candidate is timed at most.
const MOST_RUNS: usize = 400;

/// Workers on some cores, and the operands of the operators that were tried last.
pub(super) struct CpuBench {
    pool: Pool,
    control: Control,
    subjects: Subjects,
}

impl CpuBench {
    pub(super) fn new(units: &UnitSet, isa: Isa) -> Result<Self, DeviceError> {
        let failed = |error: &dyn std::fmt::Display| DeviceError::Failed(error.to_string());
        let pool = Pool::new(units.as_slice(), isa).map_err(|error| failed(&error))?;
        let control = Control::new(&pool, private_cache_bytes()).map_err(|error| failed(&error))?;
        Ok(Self { pool, control, subjects: Subjects::default() })
    }

    /// Tries a candidate with the subject's operands; fails with the reason where it cannot compute them.
    fn try_on(
        &self,
        subject: &mut Subject,
        candidate: &Candidate,
        effort: Duration,
    ) -> Result<Trial, String> {
        let weights = subject.pack(candidate, self.pool.isa())?;
        let kernel = subject.prepare(candidate, &weights)?;
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
        subject.output.fill(f32::NAN);
        let Subject { input, residual, output, sample, .. } = subject;
        let (input, residual) = (&**input, residual.as_deref());
        let shared = SharedOutput::new(output);
        let first = self.pool.run(|worker| kernel(worker, input, residual, shared));
        if let Err(error) = first {
            return Trial::Failed(error.to_string());
        }
        let error = sample.error(output);
        if !Sample::tolerates(error) {
            return Trial::Wrong { error };
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
                    let mut timeline = timeline.lock().unwrap_or_else(PoisonError::into_inner);
                    let count = timeline.push(control, elapsed);
                    let is_over = start.elapsed() >= effort || count >= MOST_RUNS;
                    is_enough.store(count >= LEAST_RUNS && is_over, Ordering::Relaxed);
                }
                worker.barrier();
            }
            let last = self.control.run(worker);
            if worker.index() == 0 {
                timeline.lock().unwrap_or_else(PoisonError::into_inner).end(last);
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
        let mut subject = match self.subjects.take(operator.fused()) {
            Ok(subject) => subject,
            Err(error) => return Ok(Trial::Failed(error.to_string())),
        };
        let trial = self.try_on(&mut subject, candidate, effort);
        self.subjects.put(subject);
        Ok(trial.unwrap_or_else(Trial::Failed))
    }
}

#[cfg(test)]
mod tests;
