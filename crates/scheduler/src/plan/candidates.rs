//! The models that a plan is searched for, with every latency that the search may ask for looked up beforehand.

use crate::plan::demand::{DeviceFacts, ModelDemand};
use crate::plan::feasible::{Turn, log_certainty, most_rate};

/// One model, as the search sees it.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) asked_per_s: f64,
    pub(crate) weight: f64,
    pub(crate) memory_bytes: u64,
    /// The batch sizes to choose from, in increasing order.
    pub(crate) batches: Vec<u32>,
    /// The most rate alone in a partition, by its units less one.
    pub(crate) alone_per_s: Vec<f64>,
    slo_s: f64,
    log_certainty: f64,
    units: usize,
    /// By batch, then by units less one.
    latency_s: Vec<f64>,
}

impl Candidate {
    pub(crate) fn new(demand: &ModelDemand<'_>, facts: &DeviceFacts) -> Self {
        let batches = demand.batches();
        let latency = |&batch: &u32| {
            (1..=facts.units).map(move |units| demand.latency(batch, units).seconds())
        };
        let mut candidate = Self {
            asked_per_s: demand.promised_per_s(),
            weight: if demand.weight > 0.0 { demand.weight } else { 0.0 },
            memory_bytes: demand.profile.memory_bytes,
            alone_per_s: Vec::new(),
            slo_s: demand.slo.map_or(0.0, |slo| slo.latency.seconds()),
            log_certainty: demand.slo.map_or(0.0, |slo| log_certainty(slo.percentile)),
            units: facts.units as usize,
            latency_s: batches.iter().flat_map(latency).collect(),
            batches,
        };
        candidate.alone_per_s =
            (1..=facts.units).map(|units| candidate.most_alone(units)).collect();
        candidate
    }

    /// Its turn in a partition of so many units, with the batch at a place in the list.
    pub(crate) fn turn(&self, batch_index: usize, units: u32, rate_per_s: f64) -> Turn {
        Turn {
            rate_per_s,
            batch: f64::from(self.batches[batch_index]),
            latency_s: self.latency_s[batch_index * self.units + units as usize - 1],
            slo_s: self.slo_s,
            log_certainty: self.log_certainty,
        }
    }

    /// The place of the smallest batch that takes what arrives within a time; the largest where none does.
    pub(crate) fn batch_for(&self, items: f64) -> usize {
        let enough = self.batches.partition_point(|&batch| f64::from(batch) < items);
        enough.min(self.batches.len() - 1)
    }

    /// Units that one item per second takes in the best partition of its own of at most so many units, if there is any.
    pub(crate) fn units_per_rate(&self, most_units: u32) -> Option<f64> {
        let sizes = self.alone_per_s.iter().zip(1..=most_units);
        let costs =
            sizes.filter(|(rate, _)| **rate > 0.0).map(|(rate, units)| f64::from(units) / rate);
        costs.min_by(f64::total_cmp)
    }

    /// How long an item may take.
    pub(crate) fn slo_s(&self) -> f64 {
        self.slo_s
    }

    fn most_alone(&self, units: u32) -> f64 {
        let rate = |batch_index| most_rate(&[], &self.turn(batch_index, units, 0.0));
        (0..self.batches.len()).map(rate).fold(0.0, f64::max)
    }
}
