//! The latency function: how long an execution will take, beside what else runs, and how well that is known.
//!
//! A prediction is a product of three factors:
//!
//! ```text
//! latency = solo(model, batch, units) x slowdown(co-runners) x correction(model)
//! ```
//!
//! `solo` is the profile's. `slowdown` follows from the bandwidth of the device's memory, the one thing that partitions
//! share (see [`MemoryShare`]). `correction` is learned from completions, and takes up what the other two do not know. The
//! product is formed where it is looked up for every request, in `serving/latencies.rs`; here is what its factors are.

mod contention;
mod correction;
mod error;
mod spread;

pub use contention::{MemoryShare, memory_stretch};
pub use error::PredictionError;

use crate::identity::ModelId;
use crate::time::Span;
use correction::Correction;
use error::ErrorWindow;
use spread::Spread;

/// What was predicted for an execution; handed back with what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// The predicted latency.
    pub latency: Span,
    /// The same before it was corrected, so that corrections made since then do not count twice.
    uncorrected: Span,
}

/// What completions taught about predictions on one device: corrections, and how far they are off.
#[derive(Clone, Debug)]
pub struct LatencyFunction {
    models: Vec<ModelLatency>,
    /// By model, the one whose entry it has.
    leads: Vec<ModelId>,
}

/// What completions taught about one model.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelLatency {
    correction: Correction,
    errors: ErrorWindow,
    spread: Spread,
}

impl LatencyFunction {
    /// For so many models, about which nothing is known yet.
    pub fn new(models: usize) -> Self {
        let leads = (0..models as u32).map(ModelId).collect();
        Self { models: vec![ModelLatency::default(); models], leads }
    }

    /// The same where models have what is learned about others, by model: those of a group take equally long.
    pub(crate) fn led_by(mut self, leads: Vec<ModelId>) -> Self {
        self.leads = leads;
        self
    }

    /// The same with corrections that were learned before, by model.
    pub(crate) fn corrected(mut self, corrections: &[f64]) -> Self {
        for (model, &factor) in self.models.iter_mut().zip(corrections) {
            model.correction = Correction::of(factor);
        }
        self
    }

    /// What is known about a model.
    pub(crate) fn of(&self, model: ModelId) -> &ModelLatency {
        &self.models[self.leads[model.index()].index()]
    }

    /// Knows about a model what was learned elsewhere.
    pub(crate) fn take_over(&mut self, model: ModelId, learned: ModelLatency) {
        let lead = self.leads[model.index()];
        self.models[lead.index()] = learned;
    }

    /// What was predicted with the present correction.
    pub fn prediction(&self, model: ModelId, latency: Span) -> Prediction {
        let uncorrected = latency * self.correction(model).recip();
        Prediction { latency, uncorrected }
    }

    /// Learns how long an execution took that was predicted.
    pub fn observe(&mut self, model: ModelId, prediction: Prediction, measured: Span) {
        let lead = self.leads[model.index()];
        let ModelLatency { correction, errors, spread, .. } = &mut self.models[lead.index()];
        let ratio = measured.us() / prediction.latency.us();
        errors.push(ratio);
        spread.observe(ratio);
        correction.observe(measured.us() / prediction.uncorrected.us());
    }

    /// What was learned of a model may not hold any more: some of it is forgotten.
    pub fn doubt(&mut self, model: ModelId) {
        let lead = self.leads[model.index()];
        let ModelLatency { correction, spread, .. } = &mut self.models[lead.index()];
        correction.doubt();
        spread.doubt();
    }

    /// The factor that has been learned for a model: above 1 where it takes longer than its profile says.
    pub fn correction(&self, model: ModelId) -> f64 {
        self.of(model).correction.factor()
    }

    /// How far a model's durations stray from what is predicted: their standard deviation, as a share.
    pub fn spread(&self, model: ModelId) -> f64 {
        self.of(model).spread.deviation()
    }

    /// How far recent predictions for a model were off; `None` before the first completion.
    pub fn error(&self, model: ModelId) -> Option<PredictionError> {
        PredictionError::over([&self.of(model).errors])
    }

    /// How far recent predictions were off for all models together.
    pub fn error_overall(&self) -> Option<PredictionError> {
        PredictionError::over(self.models.iter().map(|model| &model.errors))
    }
}

#[cfg(test)]
mod tests;
