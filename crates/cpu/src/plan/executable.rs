//! A plan on a partition: checks the inputs, runs the steps, hands back the outputs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use weft_device::{DeviceError, Executable, ExecutionReport, Urgency, check_inputs};
use weft_ir::Value;

use super::ExecutionPlan;
use crate::lane::{Arena, Lane};
use crate::{Pool, PoolError, Worker};

/// A model at fixed shapes on one partition of cores.
pub(crate) struct CpuExecutable {
    model: String,
    plan: ExecutionPlan,
    lane: Arc<Lane>,
}

impl CpuExecutable {
    pub(crate) fn new(model: &str, plan: ExecutionPlan, lane: Arc<Lane>) -> Self {
        Self { model: model.to_string(), plan, lane }
    }

    /// Runs the steps; `after_step` is called by the first worker after each of them.
    fn run_observed(
        &self,
        inputs: &[Value],
        urgency: Urgency,
        after_step: impl Fn(usize) + Sync,
    ) -> Result<Vec<Value>, DeviceError> {
        let track = self.lane.track(urgency)?;
        let mut arena = track.arena();
        let run = Run { model: &self.model, plan: &self.plan, inputs, after_step };
        run.on(&mut arena, |body| self.plan.run_on(&track.pool, body))
    }
}

impl ExecutionPlan {
    /// Refuses inputs other than those that the model requires.
    pub(crate) fn check_inputs(&self, model: &str, inputs: &[Value]) -> Result<(), DeviceError> {
        let expected = self.inputs.iter().map(|(name, fact)| (name.as_str(), fact));
        check_inputs(model, expected, inputs)
    }

    /// On the pool's workers, or on the calling thread where waking them would take longer than the work; pausing those of
    /// an interrupted pool would too.
    pub(crate) fn run_on(
        &self,
        pool: &Pool,
        body: &(dyn Fn(&Worker) + Sync),
    ) -> Result<(), PoolError> {
        match self.is_small() {
            true => Pool::run_alone(pool.isa(), body),
            false => pool.run(body),
        }
    }
}

/// One run of a plan.
pub(crate) struct Run<'a, F> {
    pub(crate) model: &'a str,
    pub(crate) plan: &'a ExecutionPlan,
    pub(crate) inputs: &'a [Value],
    /// Called by the first worker after each step.
    pub(crate) after_step: F,
}

impl<F: Fn(usize) + Sync> Run<'_, F> {
    /// Runs it in an arena, on the workers that `on_workers` gives its work to.
    pub(crate) fn on(
        &self,
        arena: &mut Arena,
        on_workers: impl FnOnce(&(dyn Fn(&Worker) + Sync)) -> Result<(), PoolError>,
    ) -> Result<Vec<Value>, DeviceError> {
        let Self { model, plan, inputs, after_step } = self;
        plan.check_inputs(model, inputs)?;
        let arena = arena.of_at_least(plan.arena_elements())?;
        let mut outputs = plan.fresh_outputs();
        let memory = plan.memory(arena, inputs, &mut outputs);
        on_workers(&|worker| plan.run_groups(&plan.segments, worker, &memory, after_step))
            .map_err(|error| DeviceError::Failed(format!("model '{model}': {error}")))?;
        let others = plan.other_outputs(model, memory)?;
        plan.results(others, outputs)
    }
}

impl Executable for CpuExecutable {
    fn run(&self, inputs: &[Value]) -> Result<Vec<Value>, DeviceError> {
        self.run_observed(inputs, Urgency::InTurn, |_| {})
    }

    fn interrupt(&self, inputs: &[Value]) -> Result<Vec<Value>, DeviceError> {
        self.run_observed(inputs, Urgency::AtOnce, |_| {})
    }

    fn time_steps(&self, inputs: &[Value]) -> Result<Vec<Duration>, DeviceError> {
        let times = Mutex::new((Instant::now(), vec![Duration::ZERO; self.plan.steps.len()]));
        self.run_observed(inputs, Urgency::InTurn, |index| {
            let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let elapsed = now.duration_since(std::mem::replace(&mut times.0, now));
            times.1[index] += elapsed;
        })?;
        Ok(times.into_inner().unwrap_or_else(PoisonError::into_inner).1)
    }

    fn report(&self) -> &ExecutionReport {
        &self.plan.report
    }
}
