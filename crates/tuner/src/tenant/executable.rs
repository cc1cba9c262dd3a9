//! Trials on one partition.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use weft_device::{Bench, DeviceError, Executable, ExecutionReport};
use weft_ir::Value;

use super::trial_model::TrialModel;
use super::trials::{Trials, Turn};

/// Runs the trial that a request names.
pub(super) struct TrialExecutable {
    trials: Arc<Trials>,
    /// `None` where the partition is too small.
    bench: Option<Mutex<Box<dyn Bench>>>,
    report: ExecutionReport,
}

impl TrialExecutable {
    pub(super) fn new(trials: Arc<Trials>, bench: Option<Box<dyn Bench>>) -> Self {
        Self { trials, bench: bench.map(Mutex::new), report: ExecutionReport::default() }
    }
}

impl Executable for TrialExecutable {
    fn run(&self, inputs: &[Value]) -> Result<Vec<Value>, DeviceError> {
        let number = TrialModel::number(inputs)?;
        let Some(wanted) = self.trials.take(number) else {
            return Err(DeviceError::Failed(format!("there is no trial {number}")));
        };
        let turn = match &self.bench {
            None => Turn::TooSmall,
            Some(bench) => {
                let mut bench = bench.lock().unwrap_or_else(PoisonError::into_inner);
                let tried = bench.try_candidate(&*wanted.operator, wanted.candidate, wanted.effort);
                tried.map_or_else(Turn::Lost, Turn::Tried)
            }
        };
        self.trials.answer(number, turn);
        Ok(inputs.to_vec())
    }

    fn time_steps(&self, inputs: &[Value]) -> Result<Vec<Duration>, DeviceError> {
        let start = Instant::now();
        self.run(inputs)?;
        Ok(vec![start.elapsed()])
    }

    fn report(&self) -> &ExecutionReport {
        &self.report
    }
}
