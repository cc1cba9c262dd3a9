//! How long every batch of every model takes on one partition: looked up many times for each request.

use crate::identity::ModelId;
use crate::lane::BatchLatency;
use crate::latency::MemoryShare;
use crate::served::ServedDevice;
use crate::serving::certainty::Certainty;
use crate::time::Span;

/// What all partitions of a device know about the present beyond profiles.
#[derive(Clone, Debug)]
pub(super) struct Conditions {
    /// How many times longer memory takes now than for one execution alone.
    pub(super) memory_stretch: f64,
    /// By model: measured over predicted.
    pub(super) corrections: Vec<f64>,
    /// By model: how far durations stray from what is predicted, as a share.
    pub(super) spreads: Vec<f64>,
    /// By model: how much of that is kept in reserve.
    pub(super) certainties: Vec<Certainty>,
}

/// One batch size of one model on one partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alone {
    pub(super) latency: Span,
    pub(super) memory: MemoryShare,
}

/// The latencies on one partition, by model.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    /// By model, then by batch size less one; empty for models that are not served here.
    table: Vec<Vec<Alone>>,
}

impl Latencies {
    /// For models, each up to a batch size, on a partition of so many units.
    pub(super) fn new(
        device: &ServedDevice,
        units: u32,
        models: impl Iterator<Item = (ModelId, u32)>,
    ) -> Self {
        let mut table = vec![Vec::new(); device.models.len()];
        for (model, largest) in models {
            let profile = &device.models[model.index()].profile;
            let alone = |batch| {
                let latency = profile.latency(batch, units);
                let bytes = profile.dram_bytes(batch, units);
                let memory = MemoryShare::of(bytes, latency, device.bandwidth_bytes_per_s);
                Alone { latency, memory }
            };
            table[model.index()] = (1..=largest.max(1)).map(alone).collect();
        }
        Self { table }
    }

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
        let slowdown = 1.0 + memory.value() * (self.conditions.memory_stretch - 1.0);
        latency * (slowdown * self.conditions.corrections[model.index()])
    }

    fn largest_batch(&self, model: ModelId) -> u32 {
        self.latencies.table[model.index()].len() as u32
    }

    fn spread(&self, model: ModelId) -> f64 {
        self.conditions.spreads[model.index()]
    }

    fn certainty(&self, model: ModelId) -> f64 {
        self.conditions.certainties[model.index()].deviations()
    }
}
