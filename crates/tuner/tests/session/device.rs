//! A device whose candidates take the times that they are said to take.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use weft_device::{
    Bench, CandidateDescription, DeviceError, KernelChoices, LoadedModel, Measurement, OperatorKey,
    Platform, Screening, Trial, TunableDevice, TunableOperator, UnitSet,
};
use weft_tuner::session::Task;

/// A device with partitions of four units each.
#[derive(Clone)]
pub(crate) struct FakeDevice {
    partitions: usize,
    screening_size: Option<usize>,
    /// How far times on a part of a partition may be from those on the whole.
    error: f64,
    /// Every so manieth trial is disturbed, and takes twice as long.
    disturbs: Option<usize>,
    lost_after: Option<usize>,
    trials: Arc<AtomicUsize>,
}

impl FakeDevice {
    pub(crate) fn new(partitions: usize) -> Self {
        Self {
            partitions,
            screening_size: None,
            error: 0.0,
            disturbs: None,
            lost_after: None,
            trials: Arc::default(),
        }
    }

    pub(crate) fn screening_on(self, size: usize) -> Self {
        Self { screening_size: Some(size), ..self }
    }

    pub(crate) fn with_error(self, error: f64) -> Self {
        Self { error, ..self }
    }

    pub(crate) fn disturbing(self, every: usize) -> Self {
        Self { disturbs: Some(every), ..self }
    }

    pub(crate) fn lost_after(self, trials: usize) -> Self {
        Self { lost_after: Some(trials), ..self }
    }
}

impl TunableDevice for FakeDevice {
    fn platform(&self) -> Platform {
        Platform { chip: "fake".into(), driver: "none".into(), kernels: "1".into() }
    }

    fn size(&self) -> usize {
        4 * self.partitions
    }

    fn size_of(&self, units: &UnitSet) -> usize {
        4 * units.len()
    }

    fn disjoint_partitions(&self, _size: usize) -> Vec<UnitSet> {
        (0..self.partitions).map(|number| [number].into_iter().collect()).collect()
    }

    fn screening_size(&self, size: usize) -> usize {
        self.screening_size.unwrap_or(size)
    }

    fn operators(
        &self,
        _model: &dyn LoadedModel,
        _shapes: &[Vec<usize>],
        _size: usize,
    ) -> Result<Vec<Arc<dyn TunableOperator>>, DeviceError> {
        Ok(Vec::new())
    }

    fn bench(&self, _units: &UnitSet) -> Result<Box<dyn Bench>, DeviceError> {
        Ok(Box::new(FakeBench(self.clone())))
    }

    fn use_choices(&self, _choices: Arc<dyn KernelChoices>) {}
}

struct FakeBench(FakeDevice);

impl Bench for FakeBench {
    fn try_candidate(
        &mut self,
        operator: &dyn TunableOperator,
        candidate: usize,
        _effort: Duration,
    ) -> Result<Trial, DeviceError> {
        let device = &self.0;
        let trial = device.trials.fetch_add(1, Ordering::Relaxed);
        if device.lost_after.is_some_and(|most| trial >= most) {
            return Err(DeviceError::Failed("the device is gone".into()));
        }
        let operator = operator.as_any().downcast_ref::<FakeOperator>().expect("an own operator");
        if operator.wrong == Some(candidate) {
            return Ok(Trial::Wrong { error: 0.5 });
        }
        if operator.failing == Some(candidate) {
            return Ok(Trial::Failed("it refuses".into()));
        }
        // The same for the same candidate, so that what looks better always does.
        let chance = (mixed(candidate as u64 + 1) % 1000) as f64 / 500.0 - 1.0;
        let is_disturbed = device.disturbs.is_some_and(|every| trial % every == every - 1);
        let factor = if is_disturbed { 2.0 } else { 1.0 };
        Ok(Trial::Measured(Measurement {
            time: operator.time(candidate).mul_f64(factor * (1.0 + device.error * chance)),
            spread: 0.01,
            interference: factor,
        }))
    }
}

/// An operator whose candidates take these times.
#[derive(Clone)]
pub(crate) struct FakeOperator {
    key: OperatorKey,
    candidates: Vec<CandidateDescription>,
    times_us: Vec<f64>,
    wrong: Option<usize>,
    failing: Option<usize>,
    uncompilable: Option<usize>,
}

impl FakeOperator {
    pub(crate) fn new(name: &str, times_us: &[f64]) -> Self {
        let describe = |number: usize| CandidateDescription {
            name: format!("candidate {number}"),
            parameters: vec![0, (number % 8) as i32, (number / 8) as i32],
            features: vec![(number % 8) as f32, (number / 8) as f32],
            screening: Screening::OnAPart,
            code: None,
        };
        Self {
            key: OperatorKey { operator: name.to_string(), precision: "f32".into() },
            candidates: (0..times_us.len()).map(describe).collect(),
            times_us: times_us.to_vec(),
            wrong: None,
            failing: None,
            uncompilable: None,
        }
    }

    /// A bowl with some noise, whose deepest place depends on the seed.
    pub(crate) fn landscape(seed: u64, count: usize) -> Self {
        let deepest = (mixed(seed) % 8, mixed(seed + 100) % (count as u64).div_ceil(8));
        let time = |number: usize| {
            let (x, y) = (number as f64 % 8.0, (number / 8) as f64);
            let away = (x - deepest.0 as f64).powi(2) + (y - deepest.1 as f64).powi(2) / 4.0;
            let noise = (mixed(seed * 7919 + number as u64) % 100) as f64 / 5000.0;
            20.0 * (1.0 + 0.05 * away) * (1.0 + noise)
        };
        let times: Vec<f64> = (0..count).map(time).collect();
        let mut operator = Self::new(&format!("landscape {seed}"), &times);
        // What a model learns of one operator is of use for another where it can tell them apart.
        for candidate in &mut operator.candidates {
            candidate.features.extend([deepest.0 as f32, deepest.1 as f32]);
        }
        operator
    }

    /// Candidates need so many different things compiled, in turn.
    pub(crate) fn compiled_from(mut self, count: u64) -> Self {
        for (number, candidate) in self.candidates.iter_mut().enumerate() {
            candidate.code = Some(number as u64 % count);
        }
        self
    }

    pub(crate) fn wrong(self, candidate: usize) -> Self {
        Self { wrong: Some(candidate), ..self }
    }

    pub(crate) fn failing(self, candidate: usize) -> Self {
        Self { failing: Some(candidate), ..self }
    }

    pub(crate) fn uncompilable(self, candidate: usize) -> Self {
        Self { uncompilable: Some(candidate), ..self }
    }

    pub(crate) fn spare(mut self, candidate: usize) -> Self {
        self.candidates[candidate].screening = Screening::Spare;
        self
    }

    pub(crate) fn time(&self, candidate: usize) -> Duration {
        Duration::from_secs_f64(self.times_us[candidate] / 1e6)
    }

    pub(crate) fn best_us(&self) -> f64 {
        self.times_us.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn task(self) -> Task {
        Task::new(Arc::new(self), 1.0)
    }
}

impl TunableOperator for FakeOperator {
    fn key(&self) -> &OperatorKey {
        &self.key
    }

    fn candidates(&self) -> &[CandidateDescription] {
        &self.candidates
    }

    fn occurrences(&self) -> usize {
        1
    }

    fn compile(&self, candidate: usize) -> Result<(), DeviceError> {
        match self.uncompilable == Some(candidate) {
            true => Err(DeviceError::Failed("it does not compile".into())),
            false => Ok(()),
        }
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// A number that looks random.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^= mixed >> 32;
    mixed = mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 32)
}
