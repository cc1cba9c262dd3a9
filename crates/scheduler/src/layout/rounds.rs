//! Requests that come in rounds: those of several models together, again and again.

use crate::identity::{MixId, ModelId};
use crate::lane::LaneMix;
use crate::plan::Dice;
use crate::policy::PartitionId;
use crate::serving::ReadyMix;
use crate::time::Span;

/// Models that are asked in rounds, all of them, and in nothing but rounds. Others come independently of them.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundLoad {
    /// The models of a round, each once, and how many requests each has.
    pub models: Vec<(ModelId, u32)>,
    /// The longest time from the first request of a round to its last.
    pub lag: Span,
    /// From the beginning of a round to that of the next, as it was of late; at least one.
    pub periods: Vec<Span>,
    /// What a round takes as a mix on all units, as a share of what its batches take one after another, where that is known.
    pub mixed: Option<f64>,
}

impl RoundLoad {
    /// At least so many arrivals of such rounds: when each comes, from the start, and for which model.
    pub(super) fn draw(&self, requests: usize) -> Vec<(Span, ModelId)> {
        let mut dice = Dice::new(11);
        let mut drawn = Vec::with_capacity(requests);
        let mut begin = Span::ZERO;
        while drawn.len() < requests {
            let period = (dice.share() * self.periods.len() as f64) as usize;
            begin += self.periods.get(period).copied().unwrap_or(Span::MAX);
            for &(model, count) in &self.models {
                drawn.extend((0..count).map(|_| (begin + self.lag * dice.share(), model)));
            }
        }
        drawn.sort_unstable();
        drawn
    }

    /// The rates of the models that are in no round; those of the others are nothing.
    pub(super) fn left_of(&self, per_s: &[f64]) -> Vec<f64> {
        let mut left = per_s.to_vec();
        self.models.iter().for_each(|(model, _)| left[model.index()] = 0.0);
        left
    }

    /// Its mix on a partition that has all units, where there is one.
    pub(super) fn mix_on(&self, partition: PartitionId) -> Option<ReadyMix> {
        let (models, lag) = (self.models.clone(), self.lag);
        let mix = LaneMix { mix: MixId(0), models, lag, can_be_counted_on: true };
        Some(ReadyMix { mix, partition, share: self.mixed? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_drawn_whole_as_far_apart_as_they_came() {
        let us = Span::from_us;
        let load = RoundLoad {
            models: vec![(ModelId(0), 2), (ModelId(3), 1)],
            lag: us(10.0),
            periods: vec![us(100.0), us(300.0)],
            mixed: None,
        };
        let drawn = load.draw(3000);
        assert_eq!(drawn.len(), 3000);
        let rounds: Vec<&[(Span, ModelId)]> = drawn.chunks(3).collect();
        for round in &rounds {
            let of = |model| round.iter().filter(|(_, other)| *other == ModelId(model)).count();
            assert_eq!((of(0), of(3)), (2, 1));
            assert!(round[2].0.saturating_sub(round[0].0) <= us(10.0));
        }
        let length_us = rounds[999][0].0.us() / 1000.0;
        assert!((190.0..210.0).contains(&length_us), "{length_us}");
        assert_eq!(load.mix_on(PartitionId(0)), None);
    }
}
