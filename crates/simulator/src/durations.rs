//! How long executions take alone and what they move, looked up for every launch.

use weft_scheduler::{ModelId, Profile, Span};

use crate::world::World;

/// An execution alone, without noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Alone {
    pub(crate) latency: Span,
    pub(crate) dram_bytes: f64,
}

/// What profiles say, remembered from the first time that it was asked.
pub(crate) struct Durations {
    models: usize,
    /// By units, then by model, then by batch, each less one.
    tables: Vec<Vec<Alone>>,
}

impl Durations {
    pub(crate) fn new(world: &World) -> Self {
        let models = world.models.len();
        Self { models, tables: vec![Vec::new(); models * world.units as usize] }
    }

    /// A batch of a model, whose profile is given, on so many units; both at least 1.
    pub(crate) fn of(
        &mut self,
        model: ModelId,
        profile: &Profile,
        batch: u32,
        units: u32,
    ) -> Alone {
        let table = &mut self.tables[(units as usize - 1) * self.models + model.index()];
        if let Some(known) = table.get(batch as usize - 1) {
            return *known;
        }
        let alone = |batch| Alone {
            latency: profile.latency(batch, units),
            dram_bytes: profile.dram_bytes(batch, units),
        };
        table.extend((table.len() as u32 + 1..=batch).map(alone));
        table[batch as usize - 1]
    }
}
