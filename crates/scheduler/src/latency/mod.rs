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
}

#[derive(Clone, Debug, Default)]
struct ModelLatency {
    correction: Correction,
    errors: ErrorWindow,
    spread: Spread,
}

impl LatencyFunction {
    /// For so many models, about which nothing is known yet.
    pub fn new(models: usize) -> Self {
        Self { models: vec![ModelLatency::default(); models] }
    }

    /// The same with corrections that were learned before, by model.
    pub(crate) fn corrected(mut self, corrections: &[f64]) -> Self {
        for (model, &factor) in self.models.iter_mut().zip(corrections) {
            model.correction = Correction::of(factor);
        }
        self
    }

    /// What was predicted with the present correction.
    pub fn prediction(&self, model: ModelId, latency: Span) -> Prediction {
        let uncorrected = latency * self.correction(model).recip();
        Prediction { latency, uncorrected }
    }

    /// Learns how long an execution took that was predicted.
    pub fn observe(&mut self, model: ModelId, prediction: Prediction, measured: Span) {
        let ModelLatency { correction, errors, spread, .. } = &mut self.models[model.index()];
        let ratio = measured.us() / prediction.latency.us();
        errors.push(ratio);
        spread.observe(ratio);
        correction.observe(measured.us() / prediction.uncorrected.us());
    }

    /// The factor that has been learned for a model: above 1 where it takes longer than its profile says.
    pub fn correction(&self, model: ModelId) -> f64 {
        self.models[model.index()].correction.factor()
    }

    /// How far a model's durations stray from what is predicted: their standard deviation, as a share.
    pub fn spread(&self, model: ModelId) -> f64 {
        self.models[model.index()].spread.deviation()
    }

    /// How far recent predictions for a model were off; `None` before the first completion.
    pub fn error(&self, model: ModelId) -> Option<PredictionError> {
        PredictionError::over([&self.models[model.index()].errors])
    }

    /// How far recent predictions were off for all models together.
    pub fn error_overall(&self) -> Option<PredictionError> {
        PredictionError::over(self.models.iter().map(|model| &model.errors))
    }
}

#[cfg(test)]
mod tests;
