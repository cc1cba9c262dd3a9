//! Fleets: which of many equal devices serves which models.
//!
//! Models are placed by the units that they are predicted to keep busy. A model that would fill much of a device, or more
//! than what each device has to carry, gets replicas, which share its requests equally. Then replicas are packed, the largest first, each onto the first device
//! that has room for it; the level up to which devices are filled is the lowest at which all find a place, so that the
//! whole fleet is used. Memory is a limit at every level.

mod unit_demand;

use crate::identity::ModelId;
use crate::served::ServedDevice;

pub use unit_demand::unit_demand;

/// The most of a device's units that one replica may be predicted to keep busy.
const REPLICA_FILL: f64 = 0.5;
/// Nothing is divided into replicas that keep less of a device busy than this.
const LEAST_REPLICA_FILL: f64 = 1.0 / 16.0;
/// What is hardly asked for counts as if it kept this share of a device busy: it takes its turns, and others wait for it.
const LEAST_FILL: f64 = 1.0 / 64.0;
/// How closely the level is searched, as a share of it.
const LEVEL_PRECISION: f64 = 0.01;
/// A level at which units are no limit.
const NO_LEVEL: f64 = f64::INFINITY;

/// Who serves what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// By device: its models, in the order of their ids, none twice.
    pub devices: Vec<Vec<ModelId>>,
    /// By model: how many devices serve it; each has the same share of its requests.
    pub replicas: Vec<u32>,
}

/// A fleet whose memory is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("model {} finds no memory on any of {devices} devices", .model.0)]
pub struct NoRoom {
    /// The first that found no place.
    pub model: ModelId,
    /// Where it was looked for.
    pub devices: u32,
}

struct Replica {
    model: ModelId,
    units: f64,
    memory_bytes: u64,
}

#[derive(Clone, Default)]
struct Room {
    units: f64,
    memory_bytes: u64,
    models: Vec<ModelId>,
}

/// Places the models of a device on so many devices like it.
pub fn place(device: &ServedDevice, devices: u32) -> Result<Placement, NoRoom> {
    let units = f64::from(device.units);
    let demand = |served| unit_demand(served, device.units).max(LEAST_FILL * units);
    let demands: Vec<f64> = device.models.iter().map(demand).collect();
    let level = demands.iter().sum::<f64>() / f64::from(devices.max(1));
    let most = level.clamp(LEAST_REPLICA_FILL * units, REPLICA_FILL * units);
    let mut replicas = Vec::new();
    let mut counts = Vec::new();
    for (model, (served, demand)) in device.models.iter().zip(demands).enumerate() {
        let count = ((demand / most).ceil() as u32).clamp(1, devices.max(1));
        counts.push(count);
        replicas.extend((0..count).map(|_| Replica {
            model: ModelId(model as u32),
            units: demand / f64::from(count),
            memory_bytes: served.profile.memory_bytes,
        }));
    }
    // A stable order, so that replicas of one model stay together and equal models in the order of their ids.
    replicas.sort_by(|one, other| other.units.total_cmp(&one.units));
    let rooms = lowest_level(&replicas, device.memory_bytes, devices)?;
    let models = rooms.into_iter().map(|mut room| {
        room.models.sort_unstable();
        room.models
    });
    Ok(Placement { devices: models.collect(), replicas: counts })
}

/// Packs up to the lowest level that is enough.
fn lowest_level(
    replicas: &[Replica],
    memory_bytes: u64,
    devices: u32,
) -> Result<Vec<Room>, NoRoom> {
    let mut best = pack(replicas, NO_LEVEL, memory_bytes, devices)?;
    let total: f64 = replicas.iter().map(|replica| replica.units).sum();
    let largest = replicas.first().map_or(0.0, |replica| replica.units);
    let mut low = (total / f64::from(devices.max(1))).max(largest);
    // Where memory allows it, first fit needs less than this: whatever finds no room leaves all devices more than half full.
    let mut high = 2.0 * low;
    match pack(replicas, high, memory_bytes, devices) {
        Ok(rooms) => best = rooms,
        Err(_) => return Ok(best),
    }
    while high > low * (1.0 + LEVEL_PRECISION) {
        let level = (low + high) / 2.0;
        match pack(replicas, level, memory_bytes, devices) {
            Ok(rooms) => (best, high) = (rooms, level),
            Err(_) => low = level,
        }
    }
    Ok(best)
}

/// Each replica onto the first device that has units up to the level, memory, and no other replica of its model. Without
/// a level, onto the one with the fewest busy units.
fn pack(
    replicas: &[Replica],
    level: f64,
    memory_bytes: u64,
    devices: u32,
) -> Result<Vec<Room>, NoRoom> {
    let mut rooms = vec![Room::default(); devices as usize];
    for replica in replicas {
        let fits = |room: &&mut Room| {
            room.units + replica.units <= level * (1.0 + 1e-9)
                && room.memory_bytes.saturating_add(replica.memory_bytes) <= memory_bytes
                && !room.models.contains(&replica.model)
        };
        let mut fitting = rooms.iter_mut().filter(fits);
        let room = match level == NO_LEVEL {
            true => fitting.min_by(|one, other| one.units.total_cmp(&other.units)),
            false => fitting.next(),
        };
        let Some(room) = room else { return Err(NoRoom { model: replica.model, devices }) };
        room.units += replica.units;
        room.memory_bytes += replica.memory_bytes;
        room.models.push(replica.model);
    }
    Ok(rooms)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::plan::Slo;
    use crate::profile::{Profile, ProfilePoint};
    use crate::served::ServedModel;
    use crate::time::Span;

    /// Models that each take 100 us of all 4 units, at these rates and of these sizes.
    fn device(models: &[(f64, u64)], memory_bytes: u64) -> ServedDevice {
        let latency = Span::from_us(100.0);
        let point = ProfilePoint { batch: 1, units: 4, latency, dram_bytes: 0.0 };
        let model = |&(expected_per_s, memory)| ServedModel {
            profile: Arc::new(Profile::new(&[point], memory).unwrap()),
            slo: Some(Slo { percentile: 0.99, latency: Span::from_us(1000.0) }),
            expected_per_s,
            weight: 1.0,
            priority: 0,
            group: None,
        };
        ServedDevice {
            models: models.iter().map(model).collect(),
            units: 4,
            bandwidth_bytes_per_s: 1e12,
            memory_bytes,
            can_interrupt: false,
        }
    }

    #[test]
    fn hot_models_have_replicas_and_every_device_is_used() {
        // 3 devices full of work of the first, on 6; the other two are half a device each.
        let placement =
            place(&device(&[(30_000.0, 1), (5_000.0, 1), (5_000.0, 1)], 10), 6).unwrap();
        assert_eq!(placement.replicas, [6, 1, 1]);
        assert!(placement.devices.iter().all(|models| models.contains(&ModelId(0))));
    }

    #[test]
    fn load_is_even() {
        let placement = place(&device(&[(1_000.0, 1); 40], 100), 10).unwrap();
        assert!(placement.devices.iter().all(|models| models.len() == 4), "{placement:?}");
    }

    #[test]
    fn memory_is_a_limit_where_units_are_not() {
        let placement = place(&device(&[(1.0, 6), (1.0, 6), (1.0, 4), (1.0, 4)], 10), 2).unwrap();
        assert_eq!(placement.devices.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
        let full = place(&device(&[(1.0, 6), (1.0, 6), (1.0, 6)], 10), 2);
        assert_eq!(full, Err(NoRoom { model: ModelId(2), devices: 2 }));
    }

    #[test]
    fn more_work_than_the_fleet_gets_done_is_placed_all_the_same() {
        let placement = place(&device(&[(1e6, 1), (1e6, 1)], 10), 3).unwrap();
        assert_eq!(placement.replicas, [3, 3]);
    }

    proptest! {
        #[test]
        fn replicas_are_all_placed_apart_and_fit(
            models in prop::collection::vec((1.0f64..40_000.0, 1u64..5), 1..40), devices in 1u32..20,
        ) {
            let device = device(&models, 20);
            let Ok(placement) = place(&device, devices) else { return Ok(()) };
            let mut seen = vec![0; models.len()];
            for list in &placement.devices {
                let distinct: BTreeSet<&ModelId> = list.iter().collect();
                prop_assert_eq!(distinct.len(), list.len());
                prop_assert!(list.iter().map(|model| models[model.index()].1).sum::<u64>() <= 20);
                list.iter().for_each(|model| seen[model.index()] += 1);
            }
            prop_assert_eq!(&seen, &placement.replicas);
            prop_assert_eq!(placement.devices.len(), devices as usize);
        }
    }
}
