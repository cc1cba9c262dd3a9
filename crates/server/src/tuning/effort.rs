//! How long a trial may take.

use std::time::Duration;

use weft_tuner::session::TuneOptions;

use super::agenda::Served;
use super::error::TuningError;

/// The share of the tightest objective for which a trial may keep a partition busy, as for all without one.
const BLOCKING: f64 = 0.25;

/// How many times as long as it is timed a candidate's trial takes: its results are checked too.
const TRIAL_LENGTH: f64 = 1.5;

/// What timing a candidate takes at least.
const LEAST_EFFORT: Duration = Duration::from_millis(1);

/// How long candidates are timed: those that are tried first, and those that are left in the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TrialEffort {
    pub(super) first: Duration,
    pub(super) last: Duration,
    /// What a trial may take, where it does not yield.
    pub(super) longest: Option<Duration>,
}

impl TrialEffort {
    /// What was asked for, or else what is usual; no more than the objectives of what is served leave room for, where trials
    /// do not yield to it at once.
    pub(super) fn beside(
        served: &[Served],
        asked: Option<Duration>,
        yields: bool,
    ) -> Result<Self, TuningError> {
        let usual = TuneOptions::default();
        let first = asked.unwrap_or(usual.effort);
        let wanted = Self { first, last: usual.final_effort, longest: None };
        let objectives = served.iter().filter_map(|(name, model)| {
            let slo = model.served.slo?;
            Some((name.as_str(), Duration::from_nanos(slo.latency.nanos())))
        });
        match objectives.min_by_key(|(_, latency)| *latency) {
            Some((model, objective)) if !yields => wanted.within(model, objective),
            _ => Ok(wanted),
        }
    }

    /// No more than the objective of a model leaves room for.
    fn within(self, model: &str, objective: Duration) -> Result<Self, TuningError> {
        let most = objective.mul_f64(BLOCKING / TRIAL_LENGTH);
        if most < LEAST_EFFORT {
            return Err(TuningError::NoRoom {
                model: model.into(),
                objective_ms: objective.as_secs_f64() * 1e3,
                least_ms: LEAST_EFFORT.as_secs_f64() * TRIAL_LENGTH * 1e3,
            });
        }
        let longest = Some(objective.mul_f64(BLOCKING));
        Ok(Self { first: self.first.min(most), last: self.last.min(most), longest })
    }

    /// What the longest trial takes.
    pub(super) fn trial(self) -> Duration {
        self.first.max(self.last).mul_f64(TRIAL_LENGTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_keeps_a_partition_busy_for_a_quarter_of_the_tightest_objective_at_most() {
        let ms = Duration::from_millis;
        let wanted = TrialEffort { first: ms(30), last: ms(12), longest: None };
        let longest = Some(ms(250));
        assert_eq!(wanted.within("model", ms(1000)).unwrap(), TrialEffort { longest, ..wanted });
        for objective in [ms(6), ms(25), ms(100)] {
            let effort = wanted.within("model", objective).unwrap();
            let rounding = Duration::from_nanos(10);
            assert!(effort.trial() <= objective / 4 + rounding, "{objective:?}: {effort:?}");
            assert!(effort.first >= LEAST_EFFORT && effort.last >= LEAST_EFFORT);
        }
        let refused = wanted.within("model", ms(5)).unwrap_err().to_string();
        assert!(refused.contains("'model' is 5 ms"), "{refused}");
    }
}
