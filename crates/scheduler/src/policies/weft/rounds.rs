//! Rounds: requests for several models that come together, again and again, as those of one client that asks all of them about
//! the same thing.

use std::collections::VecDeque;

use crate::identity::ModelId;
use crate::time::{Span, Time};

/// The most requests of one round.
const MOST_REQUESTS: usize = 8;

/// So many rounds must have been the same, one after another and without anything between them.
const SAME: usize = 16;

/// Arrivals that are remembered: those of as many rounds, and of one that is not over.
const REMEMBERED: usize = MOST_REQUESTS * (SAME + 1);

/// Of so many rounds by their length, what most of them keep to, and a few.
const MOST: usize = SAME * 4 / 5;
const FEW: usize = SAME / 4;

/// A round's requests come within this share of the time to the next round, or they are not together.
const TOGETHER: f64 = 0.5;

/// Rounds that are all the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recurring {
    /// The models, in the order of their ids, and how many requests each has.
    pub(super) models: Vec<(ModelId, u32)>,
    /// The time from the first request of a round to its last, in most rounds.
    pub(super) lag: Span,
    /// The same in those that are seldom disturbed: who runs at once on arrival may keep the others from being read.
    pub(super) quick_lag: Span,
    /// From the beginning of one to that of the next.
    pub(super) periods: Vec<Span>,
}

/// What came of late.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    /// The newest first.
    arrived: VecDeque<(ModelId, Time)>,
}

impl Rounds {
    /// A request came.
    pub(super) fn arrive(&mut self, model: ModelId, now: Time) {
        self.arrived.truncate(REMEMBERED - 1);
        self.arrived.push_front((model, now));
    }

    /// The round that comes again and again, if there is one: that of the fewest requests.
    pub(super) fn recurring(&self) -> Option<Recurring> {
        (2..=MOST_REQUESTS).find_map(|size| {
            // The last round may not be over.
            let found = (0..size).filter_map(|open| self.recurring_of(size, open));
            found.min_by_key(|recurring| recurring.lag)
        })
    }

    /// The same for rounds of so many requests, where the newest so many are of one that is not over.
    fn recurring_of(&self, size: usize, open: usize) -> Option<Recurring> {
        if self.arrived.len() < open + size * SAME {
            return None;
        }
        let round = |number: usize| self.arrived.range(open + size * number..).take(size);
        let models_of = |number: usize| {
            let mut models: Vec<ModelId> = round(number).map(|(model, _)| *model).collect();
            models.sort_unstable();
            models
        };
        let models = models_of(0);
        if models[0] == models[size - 1] || (1..SAME).any(|number| models_of(number) != models) {
            return None;
        }
        let begin = |number: usize| self.arrived[open + size * (number + 1) - 1].1;
        let end = |number: usize| self.arrived[open + size * number].1;
        let mut lags: Vec<Span> =
            (0..SAME).map(|number| end(number).since(begin(number))).collect();
        lags.sort_unstable();
        let (lag, quick_lag) = (lags[MOST], lags[FEW]);
        let mut gaps: Vec<Span> =
            (1..SAME).map(|number| begin(number - 1).since(end(number))).collect();
        gaps.sort_unstable();
        let periods = (1..SAME).map(|number| begin(number - 1).since(begin(number))).collect();
        let are_together = lag <= gaps[gaps.len() / 2] * TOGETHER;
        let counted = models.chunk_by(|one, other| one == other);
        let models = counted.map(|own| (own[0], own.len() as u32)).collect();
        are_together.then_some(Recurring { models, lag, quick_lag, periods })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Dice;

    fn at(us: f64) -> Time {
        Time::START + Span::from_us(us)
    }

    /// Rounds of these models, each so long after the one before it, whose requests come within a time in any order.
    fn rounds(models: &[u32], count: usize, period_us: f64, within_us: f64) -> Rounds {
        let mut dice = Dice::new(5);
        let mut rounds = Rounds::default();
        for number in 0..count {
            let mut arrivals: Vec<(Time, u32)> = models
                .iter()
                .map(|&model| {
                    (at(number as f64 * period_us + 1.0 + dice.share() * within_us), model)
                })
                .collect();
            arrivals.sort_unstable();
            arrivals.into_iter().for_each(|(at, model)| rounds.arrive(ModelId(model), at));
        }
        rounds
    }

    fn found(rounds: &Rounds) -> Option<Vec<(u32, u32)>> {
        let recurring = rounds.recurring()?;
        Some(recurring.models.iter().map(|(model, count)| (model.0, *count)).collect())
    }

    #[test]
    fn what_comes_together_again_and_again_is_found() {
        for (models, expected) in [
            (&[0, 1][..], &[(0, 1), (1, 1)][..]),
            (&[4, 2, 9], &[(2, 1), (4, 1), (9, 1)]),
            (&[0, 1, 0, 1], &[(0, 2), (1, 2)]),
            (&[3, 3, 3, 1], &[(1, 1), (3, 3)]),
            (&[0, 1, 2, 3, 4, 5, 6, 7], &[0, 1, 2, 3, 4, 5, 6, 7].map(|model| (model, 1))),
        ] {
            let rounds = rounds(models, SAME + 2, 1000.0, 50.0);
            assert_eq!(found(&rounds).as_deref(), Some(expected), "{models:?}");
            assert!(rounds.recurring().unwrap().lag <= Span::from_us(50.0));
        }
    }

    #[test]
    fn a_round_that_is_not_over_changes_nothing() {
        let mut rounds = rounds(&[0, 1, 2], SAME + 1, 1000.0, 50.0);
        rounds.arrive(ModelId(2), at(1e6));
        assert_eq!(found(&rounds), Some(vec![(0, 1), (1, 1), (2, 1)]));
    }

    #[test]
    fn one_model_too_few_rounds_or_too_many_requests_are_none() {
        assert_eq!(found(&rounds(&[0, 0], 40, 1000.0, 50.0)), None);
        assert_eq!(found(&rounds(&[0, 1], SAME - 1, 1000.0, 50.0)), None);
        assert_eq!(found(&rounds(&[0, 1, 2, 3, 4, 5, 6, 7, 8], 40, 1000.0, 50.0)), None);
    }

    #[test]
    fn who_asks_one_after_the_other_does_not_ask_together() {
        let mut turns = Rounds::default();
        for number in 0..200 {
            turns.arrive(ModelId(number % 3), at(f64::from(number) * 500.0));
        }
        assert_eq!(found(&turns), None);
    }

    #[test]
    fn independent_requests_are_no_rounds() {
        let mut dice = Dice::new(7);
        let (mut independent, mut at_us) = (Rounds::default(), 0.0);
        for _ in 0..5000 {
            at_us -= (1.0 - dice.share()).ln() * 1000.0;
            independent.arrive(ModelId((dice.share() * 3.0) as u32), at(at_us));
            assert_eq!(found(&independent), None);
        }
    }

    #[test]
    fn a_change_ends_them() {
        let mut rounds = rounds(&[0, 1], SAME + 2, 1000.0, 50.0);
        rounds.arrive(ModelId(5), at(1e6));
        rounds.arrive(ModelId(0), at(1.001e6));
        rounds.arrive(ModelId(1), at(1.001e6));
        assert_eq!(found(&rounds), None);
    }
}
