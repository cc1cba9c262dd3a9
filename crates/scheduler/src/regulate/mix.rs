//! What a mix is: models, and how long their steps take on every number of units.

use thiserror::Error;

use crate::{MAX_UNITS, Span};

/// How long a model took on a number of units: each of its steps by itself, and all of them in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTimes {
    /// The number of units.
    pub units: u32,
    /// Each step, in order.
    pub steps: Vec<Span>,
    /// The whole model. Steps in a row take less than each by itself, since one begins while another ends.
    pub whole: Span,
}

/// Why a mix is none.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MixError {
    /// It has no models, or a device without units.
    #[error("a mix needs a model and a device with 1 to {MAX_UNITS} units")]
    Empty,
    /// A model was timed nowhere, or not at the same steps everywhere.
    #[error("{0} has no steps, or was not timed at the same steps on every number of units")]
    Steps(String),
}

/// A model of a mix.
#[derive(Clone, Debug)]
pub struct MixModel {
    name: String,
    step_count: usize,
    /// For every number of units from one on: when each step begins, and when the last ends, in microseconds.
    begins_us: Vec<Vec<f64>>,
}

impl MixModel {
    /// A model that was timed on some numbers of units of a device that has so many. What lies between is interpolated, and more
    /// units never take longer.
    pub fn new(name: &str, timed: &[StepTimes], unit_count: u32) -> Result<Self, MixError> {
        let wrong = || MixError::Steps(name.to_string());
        let mut timed: Vec<&StepTimes> = timed.iter().filter(|times| times.units > 0).collect();
        timed.sort_by_key(|times| times.units);
        let step_count = timed.first().ok_or_else(wrong)?.steps.len();
        if step_count == 0 || timed.iter().any(|times| times.steps.len() != step_count) {
            return Err(wrong());
        }
        let scaled: Vec<(u32, Vec<f64>)> =
            timed.iter().map(|times| (times.units, in_a_row_us(times))).collect();
        let mut begins_us: Vec<Vec<f64>> = Vec::new();
        let mut fastest = vec![f64::INFINITY; step_count];
        for units in 1..=unit_count {
            let mut begins = vec![0.0];
            for (step, fastest) in fastest.iter_mut().enumerate() {
                *fastest = fastest.min(interpolated_us(&scaled, units, step));
                begins.push(begins[step] + *fastest);
            }
            begins_us.push(begins);
        }
        Ok(Self { name: name.to_string(), step_count, begins_us })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many steps it has.
    pub fn step_count(&self) -> usize {
        self.step_count
    }

    /// How long steps take from one on up to, not including, another, in microseconds.
    pub(super) fn between_us(&self, units: u32, first: usize, end: usize) -> f64 {
        let begins = self.begins(units);
        begins[end] - begins[first]
    }

    /// The step that is to begin so many microseconds after `first` began, or the first one after that.
    pub(super) fn step_after(&self, units: u32, first: usize, us: f64) -> usize {
        let begins = self.begins(units);
        let until = begins[first] + us;
        // What differs by rounding alone is the same instant.
        begins.partition_point(|&begin| begin < until - 1e-6).clamp(first, self.step_count)
    }

    fn begins(&self, units: u32) -> &[f64] {
        let place = (units.max(1) as usize).min(self.begins_us.len()) - 1;
        &self.begins_us[place]
    }
}

/// Times of steps that add up to the time of all in a row.
fn in_a_row_us(times: &StepTimes) -> Vec<f64> {
    let sum: f64 = times.steps.iter().map(|step| step.us()).sum();
    let share = if sum > 0.0 && times.whole.us() > 0.0 { times.whole.us() / sum } else { 1.0 };
    times.steps.iter().map(|step| step.us() * share).collect()
}

/// A step's time on a number of units: between two that were timed, along the inverse of units; outside of them, that of the
/// nearest, which fewer units than were ever timed share.
fn interpolated_us(timed: &[(u32, Vec<f64>)], units: u32, step: usize) -> f64 {
    let after = timed.iter().position(|&(size, _)| size >= units);
    match after {
        Some(0) => timed[0].1[step] * f64::from(timed[0].0) / f64::from(units),
        None => timed[timed.len() - 1].1[step],
        Some(after) => {
            let ((few, slow), (many, fast)) = (&timed[after - 1], &timed[after]);
            let inverse = |units: u32| 1.0 / f64::from(units);
            let share = (inverse(*few) - inverse(units)) / (inverse(*few) - inverse(*many));
            slow[step] + (fast[step] - slow[step]) * share
        }
    }
}

/// Models that run at the same time, again and again, and the device that they share.
#[derive(Clone, Debug)]
pub struct Mix {
    models: Vec<MixModel>,
    unit_count: u32,
}

impl Mix {
    /// Models that were made for a device of so many units.
    pub fn new(models: Vec<MixModel>, unit_count: u32) -> Result<Self, MixError> {
        if models.is_empty() || !(1..=MAX_UNITS).contains(&unit_count) {
            return Err(MixError::Empty);
        }
        Ok(Self { models, unit_count })
    }

    /// Its models.
    pub fn models(&self) -> &[MixModel] {
        &self.models
    }

    /// Units of the device.
    pub fn unit_count(&self) -> u32 {
        self.unit_count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times(units: u32, steps: &[f64], whole: f64) -> StepTimes {
        let steps = steps.iter().map(|&us| Span::from_us(us)).collect();
        StepTimes { units, steps, whole: Span::from_us(whole) }
    }

    #[test]
    fn what_was_timed_is_found_again_and_adds_up_to_the_whole() {
        let timed = [times(1, &[40.0, 60.0], 80.0), times(4, &[10.0, 30.0], 40.0)];
        let model = MixModel::new("a", &timed, 8).unwrap();
        assert_eq!(model.between_us(1, 0, 2), 80.0);
        assert_eq!(model.between_us(1, 0, 1), 32.0);
        assert_eq!(model.between_us(4, 1, 2), 30.0);
        // Past what was timed nothing is gained.
        assert_eq!(model.between_us(8, 0, 2), 40.0);
        // A third of the way from one unit to a quarter of the time that it takes.
        let between = model.between_us(2, 0, 1);
        assert!(between > 10.0 && between < 32.0);
    }

    #[test]
    fn steps_begin_where_those_before_end() {
        let model = MixModel::new("a", &[times(1, &[10.0, 20.0, 30.0], 60.0)], 1).unwrap();
        assert_eq!(model.step_after(1, 0, 0.0), 0);
        assert_eq!(model.step_after(1, 0, 10.0), 1);
        assert_eq!(model.step_after(1, 0, 11.0), 2);
        assert_eq!(model.step_after(1, 1, 1000.0), 3);
    }

    #[test]
    fn what_was_not_timed_is_refused() {
        assert!(MixModel::new("a", &[], 4).is_err());
        let unlike = [times(1, &[1.0], 1.0), times(2, &[1.0, 2.0], 3.0)];
        assert!(MixModel::new("a", &unlike, 4).is_err());
        assert_eq!(Mix::new(Vec::new(), 4).unwrap_err(), MixError::Empty);
    }

    proptest! {
        #[test]
        fn more_units_never_take_longer(
            timed in prop::collection::vec((1u32..20, prop::collection::vec(1.0f64..500.0, 5)), 1..6),
        ) {
            let timed: Vec<StepTimes> = timed
                .iter()
                .map(|(units, steps)| times(*units, steps, steps.iter().sum()))
                .collect();
            let model = MixModel::new("a", &timed, 24).unwrap();
            for units in 1..24 {
                for step in 0..5 {
                    let [fewer, more] =
                        [units, units + 1].map(|units| model.between_us(units, step, step + 1));
                    prop_assert!(more <= fewer + 1e-9, "{units} {step}: {fewer} {more}");
                }
            }
        }
    }
}
