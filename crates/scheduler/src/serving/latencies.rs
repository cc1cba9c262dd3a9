//! How long every batch of every model takes on one partition: looked up many times for each request.

use std::sync::{Arc, OnceLock};

use crate::identity::{MixId, ModelId};
use crate::lane::{BatchLatency, MixLatency};
use crate::latency::MemoryShare;
use crate::profile::Profile;
use crate::served::ServedDevice;
use crate::serving::certainty::Certainty;
use crate::time::Span;

/// A larger batch saves at least this share of the time of an item, or is not worth the wait.
const LEAST_GAIN: f64 = 0.005;

/// What all partitions of a device know about the present beyond profiles.
#[derive(Clone, Debug)]
pub(super) struct Conditions {
    /// By model, the one that stands for it in all that follows.
    pub(super) leads: Vec<ModelId>,
    /// How many times longer memory takes now than for one execution alone.
    pub(super) memory_stretch: f64,
    /// By model: measured over predicted.
    pub(super) corrections: Vec<f64>,
    /// By model: how far durations stray from what is predicted, as a share.
    pub(super) spreads: Vec<f64>,
    /// By model: how much of that is kept in reserve.
    pub(super) certainties: Vec<Certainty>,
    /// The mix that is ready, where there is one.
    pub(super) mix: Option<(MixId, MixLatency)>,
}

impl Conditions {
    /// Where what is known about a model stands.
    pub(super) fn index(&self, model: ModelId) -> usize {
        self.leads[model.index()].index()
    }
}

/// One batch size of one model on one partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alone {
    pub(super) latency: Span,
    pub(super) memory: MemoryShare,
}

/// By model, then by batch size less one.
type Table = Vec<Vec<Alone>>;

/// The latencies of all models on every number of units, each looked up in profiles once.
#[derive(Debug)]
pub(crate) struct LatencyTables {
    profiles: Vec<Arc<Profile>>,
    bandwidth_bytes_per_s: f64,
    /// By units less one.
    by_units: Vec<OnceLock<Arc<Table>>>,
}

impl LatencyTables {
    pub(crate) fn new(device: &ServedDevice) -> Self {
        Self {
            profiles: device.models.iter().map(|model| model.profile.clone()).collect(),
            bandwidth_bytes_per_s: device.bandwidth_bytes_per_s,
            by_units: vec![OnceLock::new(); device.units as usize],
        }
    }

    /// For models, each up to a batch size, on a partition of so many units.
    pub(super) fn latencies(&self, units: u32, models: &[(ModelId, u32)]) -> Latencies {
        let known = self.by_units.get((units as usize).wrapping_sub(1));
        let table = match known {
            Some(known) => known.get_or_init(|| Arc::new(self.table(units))).clone(),
            None => Arc::new(self.table(units)),
        };
        let mut largest = vec![0; self.profiles.len()];
        for &(model, batch) in models {
            largest[model.index()] = worthwhile(&table[model.index()], batch);
        }
        Latencies { table, largest }
    }

    fn table(&self, units: u32) -> Table {
        let batches = |profile: &Arc<Profile>| {
            let largest = profile.batches().last().copied().unwrap_or(1);
            let alone = |batch| {
                let bandwidth = self.bandwidth_bytes_per_s;
                let memory = MemoryShare::of_batch(profile, batch, units, bandwidth);
                Alone { latency: profile.latency(batch, units), memory }
            };
            (1..=largest).map(alone).collect()
        };
        self.profiles.iter().map(batches).collect()
    }
}

/// The batch at which an item takes the least time, of those up to `most`: larger ones only make requests wait. Where
/// several are about as good, it is the smallest.
fn worthwhile(batches: &[Alone], most: u32) -> u32 {
    let sizes = 1..=most.clamp(1, batches.len() as u32);
    let per_item_ns =
        |batch: u32| batches[batch as usize - 1].latency.nanos() as f64 / f64::from(batch);
    let least_ns = sizes.clone().map(per_item_ns).fold(f64::INFINITY, f64::min);
    let is_worth_it = |&batch: &u32| per_item_ns(batch) <= least_ns * (1.0 + LEAST_GAIN);
    sizes.clone().find(is_worth_it).unwrap_or(1)
}

/// The latencies on one partition.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    table: Arc<Table>,
    /// By model; zero for those that are not served here.
    largest: Vec<u32>,
}

impl Latencies {
    pub(super) fn alone(&self, model: ModelId, batch: u32) -> Alone {
        self.table[model.index()][batch as usize - 1]
    }

    /// The latencies as they are at present.
    pub(super) fn under<'a>(&'a self, conditions: &'a Conditions) -> PresentLatencies<'a> {
        PresentLatencies { latencies: self, conditions }
    }
}

/// Latencies on one partition under present conditions.
pub(super) struct PresentLatencies<'a> {
    latencies: &'a Latencies,
    conditions: &'a Conditions,
}

impl BatchLatency for PresentLatencies<'_> {
    fn of(&self, model: ModelId, batch: u32) -> Span {
        let Alone { latency, memory } = self.latencies.alone(model, batch);
        let slowdown = memory.stretched(self.conditions.memory_stretch);
        latency * (slowdown * self.conditions.corrections[self.conditions.index(model)])
    }

    fn largest_batch(&self, model: ModelId) -> u32 {
        self.latencies.largest[model.index()]
    }

    fn spread(&self, model: ModelId) -> f64 {
        self.conditions.spreads[self.conditions.index(model)]
    }

    fn certainty(&self, model: ModelId) -> f64 {
        self.conditions.certainties[self.conditions.index(model)].deviations()
    }

    fn of_mix(&self, mix: MixId) -> Option<MixLatency> {
        self.conditions.mix.filter(|(known, _)| *known == mix).map(|(_, latency)| latency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ProfilePoint;
    use crate::served::ServedModel;

    #[test]
    fn batches_grow_as_long_as_items_take_less_time() {
        let batches = |latencies: &[f64]| -> Vec<Alone> {
            let alone = |us: &f64| Alone {
                latency: Span::from_us(*us),
                memory: MemoryShare::of(0.0, Span::from_us(*us), 1.0),
            };
            latencies.iter().map(alone).collect()
        };
        for (latencies, most, expected) in [
            (&[10.0, 12.0, 14.0, 16.0][..], 4, 4),
            (&[10.0, 12.0, 14.0, 16.0], 3, 3),
            (&[10.0, 12.0, 14.0, 16.0], 9, 4),
            (&[10.0, 12.0, 20.0, 30.0], 4, 2),
            (&[10.0, 21.0, 29.0, 36.0], 4, 4),
            (&[10.0, 20.0, 30.0, 40.0], 4, 1),
            (&[10.0, 21.0, 33.0, 46.0], 4, 1),
        ] {
            assert_eq!(worthwhile(&batches(latencies), most), expected, "{latencies:?}");
        }
    }

    #[test]
    fn predictions_are_the_profile_times_the_memorys_load_times_what_was_learned() {
        // 100 us on one unit and 60 on two: one model moves next to nothing, the other is all memory on two units.
        let profile = |dram_bytes| {
            let point = |units, us| ProfilePoint {
                batch: 1,
                units,
                latency: Span::from_us(us),
                dram_bytes,
            };
            Arc::new(Profile::new(&[point(1, 100.0), point(2, 60.0)], 1).unwrap())
        };
        let model = |dram_bytes| ServedModel {
            profile: profile(dram_bytes),
            slo: None,
            expected_per_s: 1.0,
            weight: 1.0,
            priority: 0,
            group: None,
        };
        let tables = LatencyTables::new(&ServedDevice {
            models: vec![model(0.0), model(60e3)],
            units: 2,
            bandwidth_bytes_per_s: 1e9,
            memory_bytes: 1,
            can_interrupt: false,
        });
        let of = |units, id: u32, memory_stretch, correction| {
            let conditions = Conditions {
                leads: vec![ModelId(0), ModelId(1)],
                memory_stretch,
                corrections: vec![correction; 2],
                spreads: vec![0.0; 2],
                certainties: vec![Certainty::default(); 2],
                mix: None,
            };
            let latencies = tables.latencies(units, &[(ModelId(id), 1)]);
            latencies.under(&conditions).of(ModelId(id), 1)
        };
        assert_eq!(of(1, 0, 1.0, 1.0), Span::from_us(100.0));
        assert_eq!(of(2, 1, 1.0, 1.0), Span::from_us(60.0));
        assert_eq!(of(2, 1, 2.0, 1.0), Span::from_us(120.0));
        assert_eq!(of(2, 0, 2.0, 1.0), Span::from_us(60.0));
        assert_eq!(of(2, 0, 1.0, 1.5), Span::from_us(90.0));
    }
}
