//! Knee partitions: each model has a fixed partition of the size past which more units hardly help it.
//!
//! Right-sizing by the knee is what GSLICE (Dhakal et al., SoCC 2020) and D-STACK (Dhakal et al., 2023) do. Partitions stay
//! as they are here: GSLICE would tune them while it serves, and D-STACK would let models take turns in time where the
//! knees do not fit side by side. Knees that do not fit are scaled down in proportion instead.

use crate::identity::ModelId;
use crate::policies::shares::{Share, add_to_idlest, by_work, give_to_busiest, served};
use crate::policies::working_batch::working_batch;
use crate::served::ServedDevice;
use crate::serving::FixedServing;

/// A doubling of the units that gains less than this share of the latency is past the knee.
const THRESHOLD: f64 = 0.1;

/// A share of its own for each model, as large as is useful to it.
pub fn knee_partitions(device: ServedDevice) -> FixedServing {
    let partitions = served(&divided(&device), &device);
    FixedServing::new("knee-partitions", device, partitions)
}

/// A share for each model, or for as many of the busiest as there are units; the others go where most time is left.
/// Units that remain go one by one to the share that is busiest.
fn divided(device: &ServedDevice) -> Vec<Share> {
    let models = by_work(device);
    let (own, others) = models.split_at(models.len().min(device.units as usize));
    let knees: Vec<u32> = own.iter().map(|&model| knee(device, model)).collect();
    let sizes = fitted(&knees, device.units);
    let left = device.units - sizes.iter().sum::<u32>();
    let sized = sizes.iter().zip(own);
    let mut shares: Vec<Share> =
        sized.map(|(&units, &model)| Share { units, models: vec![model] }).collect();
    add_to_idlest(&mut shares, others, device);
    give_to_busiest(&mut shares, left, device);
    shares
}

/// The knee at the batch that the model would run at on the whole device.
fn knee(device: &ServedDevice, model: ModelId) -> u32 {
    let model = &device.models[model.index()];
    let batch = working_batch(model, device.units);
    model.profile.knee(batch, THRESHOLD).clamp(1, device.units)
}

/// Sizes that fit side by side: as they are, or scaled down in proportion, rounded down, and at least 1 each. There are no
/// more of them than units.
fn fitted(knees: &[u32], units: u32) -> Vec<u32> {
    let wanted: u32 = knees.iter().sum();
    if wanted <= units {
        return knees.to_vec();
    }
    let scale = f64::from(units) / f64::from(wanted);
    let scaled = |&knee: &u32| ((f64::from(knee) * scale) as u32).max(1);
    let mut sizes: Vec<u32> = knees.iter().map(scaled).collect();
    // Raising some to 1 may have taken units that are not there: the largest give them back.
    while sizes.iter().sum::<u32>() > units {
        *sizes.iter_mut().max().expect("no sizes take no units") -= 1;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policies::random_devices::{device_with, divides};

    #[test]
    fn knees_are_kept_where_they_fit_and_scaled_down_where_not() {
        assert_eq!(fitted(&[4, 8, 2], 16), [4, 8, 2]);
        assert_eq!(fitted(&[16, 8, 8], 16), [8, 4, 4]);
        assert_eq!(fitted(&[16, 1, 1, 1], 4), [1, 1, 1, 1]);
        assert_eq!(fitted(&[], 4), []);
    }

    #[test]
    fn what_knees_leave_over_goes_to_the_busiest() {
        // Batches of one stop scaling at once: these objectives allow no others.
        let device = device_with(&[(900.0, 1.1), (10.0, 1.1)], 8);
        let shares = divided(&device);
        assert_eq!(shares[0].models, [ModelId(0)]);
        assert!(shares[0].units > shares[1].units, "{shares:?}");
        assert!(divides(&shares, &device));
    }

    proptest! {
        #[test]
        fn every_unit_and_every_model_is_given_away_once(
            models in prop::collection::vec((0.0f64..1e4, 0.5f64..100.0), 0..40), units in 1u32..33,
        ) {
            let device = device_with(&models, units);
            prop_assert!(divides(&divided(&device), &device));
        }
    }
}
