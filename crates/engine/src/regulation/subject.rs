//! A mix on a device, with what its models read while it is regulated.

use std::time::Duration;

use weft_device::{CompiledMix, DeviceError, Mix, MixStep};
use weft_ir::Value;
use weft_scheduler::MAX_UNITS;
use weft_scheduler::regulate::{self, LockedStep, Lockstep, MixSchedule};

use super::RegulationError;
use super::median::MedianRun;
use super::segments::segments;

/// A model of a mix that is regulated.
pub struct RegulatedModel {
    /// What it is called, for people.
    pub name: String,
    /// What it reads while it is timed: one value per required input.
    pub inputs: Vec<Value>,
}

/// A mix whose inputs are written.
pub(super) struct Subject {
    pub(super) mix: Box<dyn Mix>,
    pub(super) models: Vec<RegulatedModel>,
    /// How long a piece of repeated runs goes on.
    piece: Duration,
}

impl Subject {
    pub(super) fn new(
        mut mix: Box<dyn Mix>,
        models: Vec<RegulatedModel>,
        piece: Duration,
    ) -> Result<Self, RegulationError> {
        let units = mix.units().len();
        if units > MAX_UNITS as usize {
            return Err(RegulationError::Units(units));
        }
        for (place, model) in models.iter().enumerate() {
            mix.write_inputs(place, &model.inputs)?;
        }
        Ok(Self { mix, models, piece })
    }

    pub(super) fn unit_count(&self) -> u32 {
        self.mix.units().len() as u32
    }

    pub(super) fn compile(&mut self, schedule: &MixSchedule) -> Result<CompiledMix, DeviceError> {
        let segments = segments(schedule, self.mix.units(), self.mix.can_fill());
        self.mix.compile(&segments)
    }

    /// The lockstep of a mix that was timed, by what the device can share.
    pub(super) fn lockstep(&self, timed: &regulate::Mix) -> Lockstep {
        Lockstep::new(timed, &|steps| self.mix.can_share(&mix_steps(steps)))
    }

    pub(super) fn compile_shared(
        &mut self,
        lockstep: &Lockstep,
    ) -> Result<CompiledMix, DeviceError> {
        let sets: Vec<Vec<MixStep>> = lockstep.sets.iter().map(|set| mix_steps(set)).collect();
        self.mix.compile_shared(&sets)
    }

    /// A piece of a schedule's runs: the median of all in microseconds, where it is known.
    pub(super) fn run(
        &mut self,
        compiled: &CompiledMix,
        runs: &mut MedianRun,
    ) -> Result<Option<f64>, DeviceError> {
        runs.advance(&mut *self.mix, compiled, self.piece)
    }

    /// The results of each model alone.
    pub(super) fn results_alone(&mut self) -> Result<Vec<Vec<Value>>, DeviceError> {
        let models = self.models.iter().enumerate();
        models.map(|(place, model)| self.mix.run_alone(place, &model.inputs)).collect()
    }

    /// Runs a schedule once, and compares its results with those of each model alone.
    pub(super) fn check(
        &mut self,
        compiled: &CompiledMix,
        alone: &[Vec<Value>],
    ) -> Result<(), RegulationError> {
        self.mix.run_us(compiled)?;
        for (place, expected) in alone.iter().enumerate() {
            let outputs = self.mix.read_outputs(place)?;
            let errors = expected.iter().zip(&outputs).map(|(one, other)| difference(one, other));
            let tolerance = self.mix.tolerance();
            let is_too_much = |error: &f64| error.is_nan() || *error > tolerance;
            if let Some(error) = errors.into_iter().find(is_too_much) {
                let model = self.models[place].name.clone();
                return Err(RegulationError::Results { model, error });
            }
        }
        Ok(())
    }
}

fn mix_steps(steps: &[LockedStep]) -> Vec<MixStep> {
    let step = |&LockedStep { model, step, units }| MixStep { model, step, units: units as usize };
    steps.iter().map(step).collect()
}

/// How far a result is from what is expected, relative to that; no number where they cannot be compared. What is no number in both
/// is equal.
fn difference(expected: &Value, actual: &Value) -> f64 {
    if expected == actual {
        return 0.0;
    }
    let numbers = |value: &Value| value.tensor().and_then(|tensor| tensor.to_f64s().ok());
    let (Some(expected), Some(actual)) = (numbers(expected), numbers(actual)) else {
        return f64::NAN;
    };
    if expected.len() != actual.len() {
        return f64::NAN;
    }
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>().sqrt();
    let is_equal = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
    let off = |(&a, &b): (&f64, &f64)| if is_equal(a, b) { 0.0 } else { a - b };
    match norm(&mut expected.iter().zip(&actual).map(off)) {
        0.0 => 0.0,
        off => off / norm(&mut expected.iter().copied().filter(|x| x.is_finite())),
    }
}

#[cfg(test)]
mod tests {
    use weft_ir::Tensor;

    use super::*;

    #[test]
    fn differences_are_relative_and_no_number_where_there_is_none() {
        let value = |elements: &[f32]| {
            Value::Tensor(Tensor::from_vec(vec![elements.len()], elements.to_vec()).unwrap())
        };
        assert_eq!(difference(&value(&[0.0, 0.0]), &value(&[0.0, 0.0])), 0.0);
        assert_eq!(difference(&value(&[3.0, 4.0]), &value(&[3.0, 3.0])), 0.2);
        assert!(difference(&value(&[1.0]), &value(&[1.0, 1.0])).is_nan());
        assert!(difference(&value(&[1.0]), &value(&[f32::NAN])).is_nan());
        assert!(difference(&value(&[f32::NAN]), &value(&[1.0])).is_nan());
        let odd = [f32::NAN, f32::INFINITY];
        assert_eq!(difference(&value(&[odd[0], odd[1], 4.0]), &value(&[odd[0], odd[1], 4.0])), 0.0);
        assert_eq!(
            difference(&value(&[odd[0], odd[1], 4.0]), &value(&[odd[0], odd[1], 3.0])),
            0.25
        );
        assert_eq!(difference(&value(&[1.0]), &value(&[f32::INFINITY])), f64::INFINITY);
    }
}
