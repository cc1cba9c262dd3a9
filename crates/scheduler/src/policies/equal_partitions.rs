//! Equal partitions: the units are divided evenly once and for all, a partition for each model as far as units go round.

use crate::policies::shares::{Share, add_to_idlest, by_work, served};
use crate::served::ServedDevice;
use crate::serving::FixedServing;

/// A share of its own for each model, all of the same size, as with fixed percentages of MPS.
pub fn equal_partitions(device: ServedDevice) -> FixedServing {
    let partitions = served(&divided(&device), &device);
    FixedServing::new("equal-partitions", device, partitions)
}

/// As many shares as there are models, or units where these are fewer. Units that do not go round are the busiest models',
/// one each; models beyond the units go to the share with the most time left.
fn divided(device: &ServedDevice) -> Vec<Share> {
    let models = by_work(device);
    let count = (models.len() as u32).min(device.units);
    let size = |index: u32| device.units / count + u32::from(index < device.units % count);
    let (own, others) = models.split_at(count as usize);
    let mut shares: Vec<Share> = (0..count)
        .zip(own)
        .map(|(index, &model)| Share { units: size(index), models: vec![model] })
        .collect();
    add_to_idlest(&mut shares, others, device);
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policies::random_devices::{device_with, divides};

    #[test]
    fn shares_differ_by_one_unit_at_most() {
        for (models, units) in [(3, 16), (16, 16), (20, 16), (1, 16), (5, 2)] {
            let sizes: Vec<u32> = divided(&device_with(&vec![(100.0, 10.0); models], units))
                .iter()
                .map(|share| share.units)
                .collect();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
        }
    }

    proptest! {
        #[test]
        fn every_unit_and_every_model_is_given_away_once(
            models in prop::collection::vec((0.0f64..1e4, 0.5f64..100.0), 0..40), units in 1u32..33,
        ) {
            let device = device_with(&models, units);
            let shares = divided(&device);
            prop_assert!(divides(&shares, &device));
        }
    }
}
