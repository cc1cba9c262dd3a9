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
    /// What it took when it was regulated, as a share of what its batches took one after another.
    pub share: f64,
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

    /// The same mix, perhaps on the partition of another layout.
    pub(super) fn again(self, ready: ReadyMix) -> Self {
        Self { ready, used: MixUse::default(), ..self }
    }

    /// What was learned may not hold any more: some of it is forgotten.
    pub(super) fn doubt(&mut self) {
        self.learned.doubt(ITSELF);
    }

    /// What was learned: a factor on its share of what its batches take.
    pub(super) fn correction(&self) -> f64 {
        self.learned.correction(ITSELF)
    }

    pub(super) fn id(&self) -> MixId {
        self.ready.mix.mix
    }

    /// How long it takes by what is known now.
    pub(super) fn latency(&self) -> MixLatency {
        MixLatency {
            share: self.ready.share * self.correction(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::device_with;
    use crate::serving::Serving;

    #[test]
    fn what_is_learned_of_a_mix_outlasts_its_rests() {
        let mut serving = Serving::new(device_with(&[(100.0, 50.0); 2], 4));
        let ready = |id| {
            let models = vec![(ModelId(0), 1), (ModelId(1), 1)];
            let (mix, lag) = (MixId(id), Span::from_us(50.0));
            let mix = LaneMix { mix, models, lag, can_be_counted_on: false };
            Some(ReadyMix { mix, partition: PartitionId(0), share: 0.75 })
        };
        let is_about = |serving: &Serving, expected: f64| {
            let correction = serving.mix_correction(MixId(1));
            assert!((correction - expected).abs() < 0.01, "{correction} and {expected}");
        };
        serving.set_mix(ready(1));
        for _ in 0..500 {
            let mix = serving.mix.as_mut().expect("it was set");
            let apart = Span::from_us(1200.0);
            let prediction = mix.prediction(apart * mix.latency().share);
            mix.observe(prediction, apart);
        }
        let learned = 1.0 / 0.75;
        is_about(&serving, learned);
        serving.set_mix(None);
        is_about(&serving, learned);
        serving.set_mix(ready(1));
        is_about(&serving, learned);
        serving.doubt_resting_mix();
        is_about(&serving, learned);
        serving.set_mix(None);
        serving.doubt_resting_mix();
        is_about(&serving, learned.sqrt());
        serving.set_mix(ready(2));
        is_about(&serving, 1.0);
    }
}
