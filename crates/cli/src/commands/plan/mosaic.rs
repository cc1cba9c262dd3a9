//! A partition plan as a mosaic: tiles as wide as partitions have units, in them a band for each model as high as its share
//! of the time.

use weft_scheduler::plan::{ModelDemand, PartitionPlan};

/// What is drawn, on a terminal or on paper.
pub(super) struct Mosaic {
    pub(super) tiles: Vec<Tile>,
    /// Units that no partition has.
    pub(super) free_units: u32,
}

/// A partition.
pub(super) struct Tile {
    pub(super) units: u32,
    /// From the bottom up, the busiest first.
    pub(super) bands: Vec<Band>,
}

/// What a model has of a partition.
#[derive(Clone)]
pub(super) struct Band {
    pub(super) name: String,
    /// Models have colours in the order in which they appear, so that neighbours differ.
    pub(super) colour: usize,
    /// The most items that run together; none where the band is of several models.
    pub(super) batch: Option<u32>,
    pub(super) rate_per_s: f64,
    /// The share of the partition's time.
    pub(super) busy: f64,
}

impl Mosaic {
    pub(super) fn new(plan: &PartitionPlan, demands: &[ModelDemand<'_>]) -> Self {
        let mut seen = Vec::new();
        let mut tiles = Vec::new();
        for partition in &plan.partitions {
            let mut shares = partition.shares.clone();
            shares.sort_by(|left, right| right.busy.total_cmp(&left.busy));
            let bands = shares.iter().map(|share| {
                let known = seen.iter().position(|&model| model == share.model);
                let colour = known.unwrap_or(seen.len());
                if known.is_none() {
                    seen.push(share.model);
                }
                Band {
                    name: demands[share.model.index()].name.clone(),
                    colour,
                    batch: Some(share.batch),
                    rate_per_s: share.rate_per_s,
                    busy: share.busy,
                }
            });
            tiles.push(Tile { units: partition.units, bands: bands.collect() });
        }
        Self { tiles, free_units: plan.best_effort_units }
    }

    pub(super) fn units(&self) -> u32 {
        self.tiles.iter().map(|tile| tile.units).sum::<u32>() + self.free_units
    }

    /// Units of each tile, and of what is left where there is something.
    pub(super) fn widths(&self) -> impl Iterator<Item = u32> {
        let free = (self.free_units > 0).then_some(self.free_units);
        self.tiles.iter().map(|tile| tile.units).chain(free)
    }
}
