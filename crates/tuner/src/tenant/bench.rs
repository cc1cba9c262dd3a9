//! A bench that asks for a turn for each trial.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use weft_device::{Bench, DeviceError, Trial, TunableOperator};

use super::tenant_device::{Operators, Turns};
use super::trial_model::TrialModel;
use super::trials::{Trials, Turn, WantedTrial};

/// How often a trial is handed in again that had its turn on a partition that is too small, and how long it rests before: a
/// layout that serves no other than such partitions may be on its way to another one.
const MOST_TURNS: usize = 100;
const REST: Duration = Duration::from_millis(10);

pub(super) struct TenantBench {
    pub(super) trials: Arc<Trials>,
    pub(super) size: usize,
    pub(super) turns: Arc<dyn Turns>,
    pub(super) operators: Arc<Operators>,
}

impl Bench for TenantBench {
    fn try_candidate(
        &mut self,
        operator: &dyn TunableOperator,
        candidate: usize,
        effort: Duration,
    ) -> Result<Trial, DeviceError> {
        let key = operator.key();
        let Some(operator) = self.operators.get(key) else {
            return Ok(Trial::Failed(format!("'{}' is none of the session's", key.operator)));
        };
        for _ in 0..MOST_TURNS {
            let wanted = WantedTrial { operator: operator.clone(), candidate, effort };
            let number = self.trials.hand_in(wanted);
            let ran = self.turns.take(TrialModel::inputs(number));
            let turn = self.trials.collect(number);
            ran?;
            match turn {
                Some(Turn::Tried(trial)) => return Ok(trial),
                Some(Turn::Lost(error)) => return Err(error),
                Some(Turn::TooSmall) => thread::sleep(REST),
                None => return Err(DeviceError::Failed("a turn was given to no trial".into())),
            }
        }
        let size = self.size;
        Err(DeviceError::Failed(format!(
            "trials for partitions of {size} get turns on smaller ones alone: what is served has been laid out anew"
        )))
    }
}
