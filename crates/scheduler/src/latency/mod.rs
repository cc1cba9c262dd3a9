//! The latency function: how long an execution will take, beside what else runs, and how well that is known.
//!
//! A prediction is a product of three factors:
//!
//! ```text
//! latency = solo(model, batch, units) x slowdown(co-runners) x correction(model)
//! ```
//!
//! `solo` is the profile's. `slowdown` follows from the bandwidth of the device's memory, the one thing that partitions
//! share (see [`MemoryShare`]). `correction` is learned from completions, and takes up what the other two do not know.

mod contention;
mod correction;
mod error;
mod spread;

use std::sync::Arc;

pub use contention::{MemoryShare, memory_stretch};
pub use error::PredictionError;

use crate::identity::ModelId;
use crate::profile::Profile;
use crate::time::Span;
use correction::Correction;
use error::ErrorWindow;
use spread::Spread;

/// A batch of a model on a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// What runs.
    pub model: ModelId,
    /// Items run together; at least 1.
    pub batch: u32,
    /// Units of the partition; at least 1.
    pub units: u32,
}

/// What was predicted for an execution; handed back with what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// The predicted latency.
    pub latency: Span,
    /// The same before it was corrected, so that corrections made since then do not count twice.
    uncorrected: Span,
}

/// Predicts latencies on one device, learns from completions, and knows its own error.
#[derive(Clone, Debug)]
pub struct LatencyFunction {
    bandwidth_bytes_per_s: f64,
    models: Vec<ModelLatency>,
}

#[derive(Clone, Debug)]
struct ModelLatency {
    profile: Arc<Profile>,
    correction: Correction,
    errors: ErrorWindow,
    spread: Spread,
}

impl LatencyFunction {
    /// For models with these profiles, on a device whose memory has this bandwidth.
    pub fn new(profiles: Vec<Arc<Profile>>, bandwidth_bytes_per_s: f64) -> Self {
        assert!(bandwidth_bytes_per_s > 0.0, "a device's memory has a bandwidth");
        let model = |profile| ModelLatency {
            profile,
            correction: Correction::default(),
            errors: ErrorWindow::default(),
            spread: Spread::default(),
        };
        Self { bandwidth_bytes_per_s, models: profiles.into_iter().map(model).collect() }
    }

    /// The same with corrections that were learned before, by model.
    pub(crate) fn corrected(mut self, corrections: &[f64]) -> Self {
        for (model, &factor) in self.models.iter_mut().zip(corrections) {
            model.correction = Correction::of(factor);
        }
        self
    }

    /// The share of an execution's time that it keeps the device's memory busy; what others running beside it are
    /// predicted with.
    pub fn memory_share(&self, execution: Execution) -> MemoryShare {
        let Execution { model, batch, units } = execution;
        let profile = &self.models[model.index()].profile;
        let bytes = profile.dram_bytes(batch, units);
        MemoryShare::of(bytes, profile.latency(batch, units), self.bandwidth_bytes_per_s)
    }

    /// How long an execution will take while others run beside it.
    pub fn predict(&self, execution: Execution, co_runners: &[MemoryShare]) -> Prediction {
        let Execution { model, batch, units } = execution;
        let ModelLatency { profile, correction, .. } = &self.models[model.index()];
        let own = self.memory_share(execution);
        let uncorrected = profile.latency(batch, units) * own.slowdown(co_runners);
        Prediction { latency: uncorrected * correction.factor(), uncorrected }
    }

    /// What was predicted otherwise, from the same profile and with the present correction.
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
