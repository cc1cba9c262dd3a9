//! Equal partitions: the units are divided evenly once and for all, a partition for each model as far as units go round.

use crate::identity::ModelId;
use crate::policy::{Action, Event, Policy};
use crate::served::ServedDevice;
use crate::serving::FixedServing;
use crate::time::Time;

/// A share of its own for each model, all of the same size, as with fixed percentages of MPS.
pub struct EqualPartitions(FixedServing);

impl EqualPartitions {
    /// On a device with its models.
    pub fn new(device: ServedDevice) -> Self {
        let partitions = divided(&device.all_models(), device.units);
        Self(FixedServing::new(device, &partitions))
    }
}

/// As many partitions as there are models, or units where these are fewer; models beyond that share them in turn.
fn divided(models: &[(ModelId, u32)], units: u32) -> Vec<(u32, Vec<(ModelId, u32)>)> {
    let count = (models.len() as u32).min(units).max(1);
    let size = |index: u32| units / count + u32::from(index < units % count);
    let mut partitions: Vec<(u32, Vec<(ModelId, u32)>)> =
        (0..count).map(|index| (size(index), Vec::new())).collect();
    for (index, model) in models.iter().enumerate() {
        partitions[index % count as usize].1.push(*model);
    }
    partitions
}

impl Policy for EqualPartitions {
    fn name(&self) -> &'static str {
        "equal-partitions"
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        self.0.react(event, now, actions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_and_every_model_is_given_away() {
        for (count, units) in [(3u32, 16u32), (16, 16), (20, 16), (1, 16), (5, 2)] {
            let models: Vec<(ModelId, u32)> = (0..count).map(|index| (ModelId(index), 8)).collect();
            let partitions = divided(&models, units);
            assert_eq!(partitions.iter().map(|(size, _)| size).sum::<u32>(), units);
            let served: usize = partitions.iter().map(|(_, models)| models.len()).sum();
            assert_eq!(served, count as usize);
            assert!(partitions.iter().all(|(_, models)| !models.is_empty()));
        }
    }
}
