//! Equal partitions: the units are divided evenly once and for all, a partition for each model as far as units go round.

use std::sync::Arc;

use crate::identity::ModelId;
use crate::policy::{Action, Event, Policy};
use crate::profile::Profile;
use crate::serving::{Serving, ServingPartition};
use crate::time::Time;

/// A share of its own for each model, all of the same size, as with fixed percentages of MPS.
pub struct EqualPartitions(Serving);

impl EqualPartitions {
    /// For models with these profiles on a device of so many units.
    pub fn new(profiles: &[Arc<Profile>], units: u32) -> Self {
        Self(Serving::new(profiles, &divided(profiles, units)))
    }
}

/// As many partitions as there are models, or units where these are fewer; models beyond that share them in turn.
fn divided(profiles: &[Arc<Profile>], units: u32) -> Vec<ServingPartition> {
    let count = (profiles.len() as u32).min(units).max(1);
    let size = |index: u32| units / count + u32::from(index < units % count);
    let mut partitions: Vec<ServingPartition> = (0..count)
        .map(|index| ServingPartition { units: size(index), models: Vec::new() })
        .collect();
    for (index, profile) in profiles.iter().enumerate() {
        let largest = profile.batches().last().copied().unwrap_or(1);
        partitions[index % count as usize].models.push((ModelId(index as u32), largest));
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
    use crate::profile::ProfilePoint;
    use crate::time::Span;

    #[test]
    fn every_unit_and_every_model_is_given_away() {
        let point =
            ProfilePoint { batch: 1, units: 1, latency: Span::from_us(9.0), dram_bytes: 0.0 };
        let profile = Arc::new(Profile::new(&[point], 0).unwrap());
        for (models, units) in [(3usize, 16u32), (16, 16), (20, 16), (1, 16), (5, 2)] {
            let partitions = divided(&vec![profile.clone(); models], units);
            assert_eq!(partitions.iter().map(|partition| partition.units).sum::<u32>(), units);
            let served: usize = partitions.iter().map(|partition| partition.models.len()).sum();
            assert_eq!(served, models);
            assert!(partitions.iter().all(|partition| !partition.models.is_empty()));
        }
    }
}
