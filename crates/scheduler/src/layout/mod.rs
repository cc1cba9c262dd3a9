//! Layouts: how large the partitions of a device are, where each serves every model that it can answer in time.
//!
//! Partitions that all serve the same models are a pool: a request goes to whichever answers it first, and a load that moves
//! from one model to another finds all of them. How many partitions that should be, and how large, is a matter of the
//! mix: small ones waste little on models that gain nothing from more units, large ones are needed where an objective leaves
//! no time. It is found by rehearsal: layouts are played with the load as it is, and the one that loses the least is taken.

mod merged;
mod rehearsal;
mod rounds;
mod search;
#[cfg(test)]
mod tests;

pub use rounds::RoundLoad;
pub use search::{LayoutFound, LayoutTask, Lost};

use crate::identity::ModelId;
use crate::served::{ServedDevice, ServedModel};

/// The share of its objective that a single item may take on a partition that serves the model: the rest is for waiting.
const MOST_OF_OBJECTIVE: f64 = 0.92;

/// The share of its objective for which one batch of a model may keep a partition busy.
const BATCH_SHARE: f64 = 0.5;

/// The sizes of a device's partitions, the largest first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layout(Vec<u32>);

impl Layout {
    /// Partitions of these sizes.
    pub fn new(mut sizes: Vec<u32>) -> Self {
        sizes.retain(|&size| size > 0);
        sizes.sort_unstable_by(|left, right| right.cmp(left));
        Self(sizes)
    }

    /// So many partitions that differ by one unit at most.
    pub fn even(units: u32, count: u32) -> Self {
        Self::new(
            (0..count).map(|index| units / count + u32::from(index < units % count)).collect(),
        )
    }

    /// The sizes, the largest first.
    pub fn sizes(&self) -> &[u32] {
        &self.0
    }

    /// For each partition the models that it serves, and the largest batch of each.
    pub fn seats(&self, device: &ServedDevice) -> Vec<Vec<(ModelId, u32)>> {
        let residents = resident(device);
        let largest = self.0.first().copied();
        let seats = |&units: &u32| {
            let models = residents.iter().filter_map(|&id| {
                let model = &device.models[id.index()];
                let batch = largest_batch(model, units);
                // What no partition answers in time is tried on the largest: it may be faster than its profile.
                let is_last_resort = Some(units) == largest;
                batch.or(is_last_resort.then_some(1)).map(|batch| (id, batch))
            });
            models.collect()
        };
        self.0.iter().map(seats).collect()
    }
}

/// The largest batch at which a partition serves a model; `None` where it cannot answer in time.
pub(crate) fn largest_batch(model: &ServedModel, units: u32) -> Option<u32> {
    let Some(slo) = model.slo else { return Some(model.largest_batch()) };
    let takes = |batch| model.profile.latency(batch, units);
    if takes(1) > slo.latency * MOST_OF_OBJECTIVE {
        return None;
    }
    let fits = |batch: &u32| takes(*batch) <= slo.latency * BATCH_SHARE;
    Some((2..=model.largest_batch()).rev().find(fits).unwrap_or(1))
}

/// The models that have room in the device's memory: those that are worth most for their size, where not all have.
fn resident(device: &ServedDevice) -> Vec<ModelId> {
    let ids = (0..device.models.len() as u32).map(ModelId);
    let needed: u64 = device.models.iter().map(|model| model.profile.memory_bytes).sum();
    if needed <= device.memory_bytes {
        return ids.collect();
    }
    let worth = |id: &ModelId| {
        let model = &device.models[id.index()];
        model.weight * model.expected_per_s / model.profile.memory_bytes.max(1) as f64
    };
    let mut by_worth: Vec<ModelId> = ids.collect();
    by_worth.sort_by(|left, right| worth(right).total_cmp(&worth(left)).then(left.cmp(right)));
    let mut free_bytes = device.memory_bytes;
    by_worth.retain(|id| {
        let bytes = device.models[id.index()].profile.memory_bytes;
        let fits = bytes <= free_bytes;
        free_bytes -= if fits { bytes } else { 0 };
        fits
    });
    by_worth.sort_unstable();
    by_worth
}
