//! What a partition plan is made for: the models with their objectives and rates, and the device's limits.

use crate::profile::Profile;
use crate::time::Span;

/// A latency objective: the share of requests that must be answered within a latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slo {
    /// The share, above 0 and at most 1: 0.99 is the 99th percentile.
    pub percentile: f64,
    /// From arrival to answer.
    pub latency: Span,
}

/// One model and what is asked of it.
#[derive(Clone, Debug)]
pub struct ModelDemand<'a> {
    /// For people to read.
    pub name: String,
    /// How long it takes alone.
    pub profile: &'a Profile,
    /// How many times longer it takes than alone.
    pub slowdown: f64,
    /// What was promised; `None` is best effort, which is served by the units that the plan leaves over.
    pub slo: Option<Slo>,
    /// Items per second that arrive; what is not above zero asks for nothing.
    pub rate_per_s: f64,
    /// What one item served within its objective is worth, in relation to the other models'.
    pub weight: f64,
    /// The most items that may run together.
    pub max_batch: u32,
}

impl ModelDemand<'_> {
    /// How long a batch takes on a number of units.
    pub fn latency(&self, batch: u32, units: u32) -> Span {
        self.profile.latency(batch, units) * self.slowdown
    }

    /// Items per second that must be served within the objective: none for best effort.
    pub fn promised_per_s(&self) -> f64 {
        let asks = self.slo.is_some() && self.rate_per_s.is_finite() && self.rate_per_s > 0.0;
        if asks { self.rate_per_s } else { 0.0 }
    }

    /// The batch sizes that a plan chooses from: those measured that are allowed, and always the single item.
    pub fn batches(&self) -> Vec<u32> {
        let measured = self.profile.batches().iter().copied();
        let mut batches: Vec<u32> = std::iter::once(1)
            .chain(measured)
            .filter(|&batch| batch <= self.max_batch.max(1))
            .collect();
        batches.dedup();
        batches
    }
}

/// The limits of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Units to divide into partitions.
    pub units: u32,
    /// Memory for the models: each counts once, however many partitions it runs in.
    pub memory_bytes: u64,
}
