//! The partition plan: who owns which share of the device, who takes turns there, and what could not be given.

use crate::identity::ModelId;
use crate::time::Span;

/// A division of one device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionPlan {
    /// Disjoint partitions, the largest first.
    pub partitions: Vec<PlannedPartition>,
    /// Units that no objective needs.
    pub best_effort_units: u32,
    /// Models that get less than they ask for, in the order of the demands.
    pub shortfalls: Vec<Shortfall>,
}

/// A partition and the models that take turns in it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedPartition {
    /// Its size.
    pub units: u32,
    /// Who takes turns: each model at most once.
    pub shares: Vec<Share>,
}

/// What one model gets of one partition; in several partitions, it has that many replicas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Whose it is.
    pub model: ModelId,
    /// The most items that run together.
    pub batch: u32,
    /// Items per second of this replica.
    pub rate_per_s: f64,
    /// The share of the partition's time that this takes, in full batches.
    pub busy: f64,
}

/// A model that gets less than it asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shortfall {
    /// Which.
    pub model: ModelId,
    /// Items per second that it asks for.
    pub asked_per_s: f64,
    /// Items per second that it gets, over all partitions.
    pub given_per_s: f64,
    /// What stands in the way.
    pub reason: ShortfallReason,
}

/// Why a model gets less than it asks for, and what would make it fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortfallReason {
    /// Even alone on the whole device, one item takes as long as is promised, or longer.
    SloTooTight {
        /// How long one item takes there: the promise must be longer than this.
        least_latency: Span,
    },
    /// The other models, or its own rate, leave too few units.
    NotEnoughUnits {
        /// With this many more, what is missing fits into partitions of its own.
        units_missing: u32,
    },
    /// Its weights do not fit beside the other models'.
    NotEnoughMemory {
        /// With this many more, it is resident.
        bytes_missing: u64,
    },
}

impl PartitionPlan {
    /// Items per second that a model is given, over all partitions.
    pub fn given_per_s(&self, model: ModelId) -> f64 {
        self.shares().filter(|share| share.model == model).map(|share| share.rate_per_s).sum()
    }

    /// Units of all partitions together.
    pub fn planned_units(&self) -> u32 {
        self.partitions.iter().map(|partition| partition.units).sum()
    }

    pub(crate) fn shares(&self) -> impl Iterator<Item = &Share> {
        self.partitions.iter().flat_map(|partition| &partition.shares)
    }
}
