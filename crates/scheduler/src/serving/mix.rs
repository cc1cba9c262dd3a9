//! A mix that is ready on one of the partitions: how long it takes, and how often it is run.

use crate::identity::{MixId, ModelId};
use crate::lane::{Batch, LaneMix, MixLatency};
use crate::latency::{LatencyFunction, Prediction};
use crate::policy::PartitionId;
use crate::time::Span;

/// A mix that was regulated.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadyMix {
    /// Which, of which models, and how far apart its requests come.
    pub mix: LaneMix,
    /// Where it runs.
    pub partition: PartitionId,
    /// How long it took when it was regulated.
    pub latency: Span,
}

/// How requests of a mix's models were run since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MixUse {
    /// Those that were launched as the mix.
    pub together: u32,
    /// Those that were launched by themselves on the same partition.
    pub apart: u32,
}

/// What is learned of it is learned as of a model, the only one there is.
const ITSELF: ModelId = ModelId(0);

pub(super) struct ServedMix {
    pub(super) ready: ReadyMix,
    learned: LatencyFunction,
    used: MixUse,
}

impl ServedMix {
    pub(super) fn new(ready: ReadyMix) -> Self {
        Self { ready, learned: LatencyFunction::new(1), used: MixUse::default() }
    }

    /// The same mix, launched again after it rested: what was learned may not hold any more.
    pub(super) fn resumed(mut self, ready: ReadyMix) -> Self {
        self.learned.doubt(ITSELF);
        Self { ready, used: MixUse::default(), ..self }
    }

    /// The same mix on the partitions of another layout.
    pub(super) fn moved(self, ready: ReadyMix) -> Self {
        Self { ready, ..self }
    }

    /// What was learned: a factor on how long it took when it was regulated.
    pub(super) fn correction(&self) -> f64 {
        self.learned.correction(ITSELF)
    }

    pub(super) fn id(&self) -> MixId {
        self.ready.mix.mix
    }

    /// How long it takes by what is known now.
    pub(super) fn latency(&self) -> MixLatency {
        MixLatency {
            duration: self.ready.latency * self.correction(),
            spread: self.learned.spread(ITSELF),
        }
    }

    pub(super) fn prediction(&self, expected: Span) -> Prediction {
        self.learned.prediction(ITSELF, expected)
    }

    pub(super) fn observe(&mut self, prediction: Prediction, took: Span) {
        self.learned.observe(ITSELF, prediction, took);
    }

    /// A batch is launched on a partition.
    pub(super) fn count(&mut self, partition: PartitionId, batch: &Batch) {
        let is_member = self.ready.mix.models.iter().any(|(member, _)| *member == batch.model);
        let requests = batch.requests.len() as u32;
        if batch.mix == Some(self.id()) {
            self.used.together += requests;
        } else if is_member && self.ready.partition == partition {
            self.used.apart += requests;
        }
    }

    pub(super) fn take_use(&mut self) -> MixUse {
        std::mem::take(&mut self.used)
    }
}
