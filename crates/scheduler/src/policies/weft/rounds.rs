//! Rounds: requests for several models that come together, again and again, as those of one client that asks all of them about
//! the same thing; whatever comes for other models meanwhile.
//!
//! Whether the requests of a set of models come in rounds is seen by them alone. A set that does has no part that does not, so
//! that it is found by its pairs, and by adding one model after another.

use std::collections::VecDeque;

use crate::identity::ModelId;
use crate::time::{Span, Time};

/// The most requests of one round.
const MOST_REQUESTS: usize = 8;

/// So many rounds must have been the same, one after another and without anything of their models between them.
const SAME: usize = 16;

/// Requests of a model that are remembered: those of as many rounds, and of one that is not over.
const REMEMBERED: usize = MOST_REQUESTS * (SAME + 1);

/// Sets of models that are tried each time, apart from those that have one that was found just now.
const MOST_TRIED: usize = 64;

/// Of so many rounds by their length, what most of them keep to, and a few.
const MOST: usize = SAME * 4 / 5;
const FEW: usize = SAME / 4;

/// A round's requests come within this share of the time to the next round, or they are not together.
const TOGETHER: f64 = 0.5;

/// Where none comes for so many times what most periods keep to while others ask, rounds have ended.
const MISSED: f64 = 4.0;

/// Rounds that are all the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recurring {
    /// The models, in the order of their ids, and how many requests each has.
    pub(super) models: Vec<(ModelId, u32)>,
    /// The time from the first request of a round to its last, in most rounds.
    pub(super) lag: Span,
    /// The same in those that are seldom disturbed: who runs at once on arrival may keep the others from being read.
    pub(super) quick_lag: Span,
    /// From the beginning of one to that of the next, the shortest first.
    pub(super) periods: Vec<Span>,
}

/// What came of late.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    /// By model, the newest first.
    arrived: Vec<VecDeque<Time>>,
    /// Which pair is tried next: the number of the one times that of all models, and the number of the other.
    next: usize,
}

impl Rounds {
    /// A request came.
    pub(super) fn arrive(&mut self, model: ModelId, now: Time) {
        let models = self.arrived.len().max(model.index() + 1);
        self.arrived.resize_with(models, VecDeque::new);
        let own = &mut self.arrived[model.index()];
        own.truncate(REMEMBERED - 1);
        own.push_front(now);
    }

    /// A round that comes again and again and is worth it: of the models of one that does, and of others; or of any, where that
    /// is of none. It may take several calls to find it, each of which goes on where the last one ended.
    pub(super) fn search(
        &mut self,
        known: &[ModelId],
        now: Time,
        is_worth_it: impl Fn(&Recurring) -> bool,
    ) -> Option<Recurring> {
        let (mut models, mut found) = (known.to_vec(), None);
        let count = self.arrived.len();
        let all = if known.is_empty() { count * count } else { count };
        let mut left = MOST_TRIED.min(all);
        while left > 0 {
            left -= 1;
            let Some(tried) = self.next_set(&models) else { continue };
            let recurring = self.recurring(&tried, now).filter(&is_worth_it);
            if recurring.is_some() {
                (models, found) = (tried, recurring);
                left = left.max(count);
            }
        }
        found
    }

    /// The next pair, or the models of a set and the next one; `None` where that was tried before.
    fn next_set(&mut self, models: &[ModelId]) -> Option<Vec<ModelId>> {
        let count = self.arrived.len();
        self.next = (self.next + 1) % (count * count);
        let [one, other] = [self.next / count, self.next % count].map(|it| ModelId(it as u32));
        let mut set = if models.is_empty() { vec![one] } else { models.to_vec() };
        let is_new = if models.is_empty() { one < other } else { !set.contains(&other) };
        set.push(other);
        set.sort_unstable();
        is_new.then_some(set)
    }

    /// The round of all of these models that comes again and again, if there is one: that of the fewest requests.
    pub(super) fn recurring(&self, models: &[ModelId], now: Time) -> Option<Recurring> {
        if models.len() > MOST_REQUESTS {
            return None;
        }
        let arrived = self.newest(models)?;
        let last = arrived.first()?.1;
        let mut sizes = models.len().max(2)..=MOST_REQUESTS;
        let recurring = sizes.find_map(|size| {
            // The last round may not be over.
            let found = (0..size).filter_map(|open| same(arrived.get(open..)?, size, models));
            found.min_by_key(|recurring| recurring.lag)
        })?;
        (now.since(last) <= recurring.periods[MOST] * MISSED).then_some(recurring)
    }

    /// The newest requests of some models, each as a [`part`] of a round, the newest first; `None` where one has too few.
    fn newest(&self, models: &[ModelId]) -> Option<Vec<(u32, Time)>> {
        let own = |model: &ModelId| self.arrived.get(model.index());
        let own = models.iter().map(|model| own(model).filter(|own| own.len() >= SAME));
        let mut own: Vec<_> = own.map(|own| Some(own?.iter().peekable())).collect::<Option<_>>()?;
        let newest = (0..REMEMBERED).map_while(|_| {
            let newest = own.iter_mut().enumerate();
            let newest = newest.filter_map(|(place, own)| Some((**own.peek()?, place))).max()?;
            own[newest.1].next();
            Some((part(newest.1), newest.0))
        });
        Some(newest.collect())
    }
}

/// One request of the model of a place as a part of the number that is a round: four bits for each of [`MOST_REQUESTS`] models.
fn part(place: usize) -> u32 {
    1 << (4 * place)
}

/// The rounds of so many of these requests, the newest first, where they recur and all have all of these models.
fn same(arrived: &[(u32, Time)], size: usize, models: &[ModelId]) -> Option<Recurring> {
    let all = |number: usize| arrived.get(number * size..(number + 1) * size);
    let content = |number: usize| Some(all(number)?.iter().map(|(part, _)| part).sum::<u32>());
    let first = content(0)?;
    let count = |place: usize| first / part(place) % part(1);
    let is_whole = (0..models.len()).all(|place| count(place) > 0);
    if !is_whole || (1..SAME).any(|number| content(number) != Some(first)) {
        return None;
    }
    let begin = |number: usize| arrived[size * (number + 1) - 1].1;
    let end = |number: usize| arrived[size * number].1;
    let mut lags: Vec<Span> = (0..SAME).map(|number| end(number).since(begin(number))).collect();
    lags.sort_unstable();
    let (lag, quick_lag) = (lags[MOST], lags[FEW]);
    let mut gaps: Vec<Span> =
        (1..SAME).map(|number| begin(number - 1).since(end(number))).collect();
    gaps.sort_unstable();
    let mut periods: Vec<Span> =
        (1..SAME).map(|number| begin(number - 1).since(begin(number))).collect();
    periods.sort_unstable();
    // What is longer is a pause: they had ended, and began again.
    let longest = periods[MOST] * MISSED;
    periods.iter_mut().for_each(|period| *period = longest.min(*period));
    let are_together = lag <= gaps[gaps.len() / 2] * TOGETHER;
    let models = models.iter().enumerate().map(|(place, model)| (*model, count(place))).collect();
    are_together.then_some(Recurring { models, lag, quick_lag, periods })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Dice;

    fn at(us: f64) -> Time {
        Time::START + Span::from_us(us)
    }

    /// What comes in rounds of these models, each so long after the one before it, within a time and in any order.
    fn rounds(models: &[u32], count: usize, period_us: f64, within_us: f64) -> Vec<(f64, u32)> {
        let mut dice = Dice::new(5);
        let mut all = Vec::new();
        for number in 0..count {
            let begin_us = number as f64 * period_us + 1.0;
            all.extend(models.iter().map(|&model| (begin_us + dice.share() * within_us, model)));
        }
        all
    }

    /// What comes for a model independently of all others, in a time.
    fn independent(model: u32, per_ms: f64, length_us: f64, dice: &mut Dice) -> Vec<(f64, u32)> {
        let next = |at_us: &f64| Some(at_us - (1.0 - dice.share()).ln() * 1000.0 / per_ms);
        let times = std::iter::successors(Some(0.0), next).skip(1);
        times.take_while(|&at_us| at_us < length_us).map(|at_us| (at_us, model)).collect()
    }

    /// Takes in what comes, in order; looks for what recurs each time that so many more have come.
    fn look_each(
        rounds: &mut Rounds,
        mut arrivals: Vec<(f64, u32)>,
        each: usize,
        mut look: impl FnMut(&mut Rounds, f64),
    ) {
        arrivals.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        for (number, (us, model)) in (1..).zip(arrivals) {
            rounds.arrive(ModelId(model), at(us));
            if number % each == 0 {
                look(rounds, us);
            }
        }
    }

    fn after(arrivals: Vec<(f64, u32)>) -> Rounds {
        let mut rounds = Rounds::default();
        look_each(&mut rounds, arrivals, usize::MAX, |_, _| {});
        rounds
    }

    /// What is found in as many calls as it may take.
    fn found_at(rounds: &mut Rounds, us: f64) -> Option<Vec<(u32, u32)>> {
        let calls = rounds.arrived.len().pow(2).div_ceil(MOST_TRIED);
        let recurring = (0..calls).find_map(|_| rounds.search(&[], at(us), |_| true))?;
        Some(recurring.models.iter().map(|(model, count)| (model.0, *count)).collect())
    }

    fn found(rounds: &mut Rounds) -> Option<Vec<(u32, u32)>> {
        let newest = rounds.arrived.iter().filter_map(|own| own.front()).max().copied();
        found_at(rounds, newest?.since(Time::START).us())
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
            let mut rounds = after(rounds(models, SAME + 2, 1000.0, 50.0));
            assert_eq!(found(&mut rounds).as_deref(), Some(expected), "{models:?}");
            let recurring = rounds.search(&[], at(17e3), |_| true).unwrap();
            assert!(recurring.lag <= Span::from_us(50.0));
        }
    }

    #[test]
    fn a_round_that_is_not_over_changes_nothing() {
        let mut rounds = after(rounds(&[0, 1, 2], SAME + 1, 1000.0, 50.0));
        rounds.arrive(ModelId(2), at(1e6));
        assert_eq!(found(&mut rounds), Some(vec![(0, 1), (1, 1), (2, 1)]));
    }

    #[test]
    fn one_model_too_few_rounds_or_too_many_requests_are_none() {
        assert_eq!(found(&mut after(rounds(&[0, 0], 40, 1000.0, 50.0))), None);
        assert_eq!(found(&mut after(rounds(&[0, 1], SAME - 1, 1000.0, 50.0))), None);
        let many = found(&mut after(rounds(&[0, 1, 2, 3, 4, 5, 6, 7, 8], 40, 1000.0, 50.0)));
        assert_eq!(many.map(|some| some.len()), Some(MOST_REQUESTS), "it is a part of them");
        assert_eq!(found(&mut after(rounds(&[0, 0, 0, 0, 0, 0, 0, 0, 1], 40, 1e3, 50.0))), None);
    }

    #[test]
    fn others_do_not_hide_rounds_however_often_they_come() {
        let expected = [(1, 1), (4, 2), (6, 1)];
        for (seed, per_ms) in (0..).zip([0.1, 0.3, 1.0, 3.0, 10.0]) {
            let mut dice = Dice::new(seed);
            let mut arrivals = rounds(&[4, 1, 6, 4], 60, 1000.0, 50.0);
            for model in [0, 2, 3, 5, 7, 8] {
                arrivals.extend(independent(model, per_ms, 60e3, &mut dice));
            }
            look_each(&mut Rounds::default(), arrivals, 7, |rounds, us| {
                if us > (SAME + 1) as f64 * 1000.0 {
                    assert_eq!(
                        found_at(rounds, us).as_deref(),
                        Some(&expected[..]),
                        "{per_ms} {us}"
                    );
                }
            });
        }
    }

    #[test]
    fn independent_requests_are_no_rounds() {
        for (seed, rates) in (0..).zip([
            &[1.0; 2][..],
            &[1.0; 3],
            &[1.0, 2.0],
            &[0.3, 1.0, 2.0, 3.0, 10.0],
            &[1.0; 8],
            &[1.0; 40],
        ]) {
            let mut dice = Dice::new(seed);
            let arrivals = (0..).zip(rates).flat_map(|(model, &per_ms)| {
                independent(model, per_ms, 3e6 / rates.len() as f64, &mut dice)
            });
            look_each(&mut Rounds::default(), arrivals.collect(), 5, |rounds, us| {
                assert_eq!(rounds.search(&[], at(us), |_| true), None, "{rates:?} {us}");
            });
        }
    }

    #[test]
    fn who_asks_one_after_the_other_does_not_ask_together() {
        let turns = (0..200).map(|number| (f64::from(number) * 500.0, number as u32 % 2));
        look_each(&mut Rounds::default(), turns.collect(), 1, |rounds, us| {
            assert_eq!(found_at(rounds, us), None);
        });
    }

    #[test]
    fn another_request_of_a_model_ends_them() {
        let mut rounds = after(rounds(&[0, 1], SAME + 2, 1000.0, 50.0));
        let end_us = (SAME + 2) as f64 * 1000.0;
        rounds.arrive(ModelId(5), at(end_us));
        assert!(found(&mut rounds).is_some(), "it is none of theirs");
        rounds.arrive(ModelId(0), at(end_us - 500.0));
        rounds.arrive(ModelId(0), at(end_us));
        rounds.arrive(ModelId(1), at(end_us));
        assert_eq!(found(&mut rounds), None);
    }

    #[test]
    fn rounds_that_stop_while_others_go_on_have_ended() {
        let mut arrivals = rounds(&[0, 1], SAME + 2, 1000.0, 50.0);
        let last_us = (SAME + 1) as f64 * 1000.0;
        for pause_us in [0.0, 1e9] {
            // A pause, and five more of them.
            let again = rounds(&[0, 1], 5, 1000.0, 50.0);
            let begin_us = last_us + pause_us;
            arrivals.extend(again.into_iter().map(|(us, model)| (begin_us + us + 1000.0, model)));
            let mut rounds = after(arrivals.clone());
            let last_us = begin_us + 5000.0;
            assert!(found_at(&mut rounds, last_us + 3500.0).is_some());
            assert_eq!(found_at(&mut rounds, last_us + 4500.0), None, "{pause_us}");
            arrivals.truncate(2 * (SAME + 2));
        }
    }

    #[test]
    fn a_set_that_is_known_is_tried_with_each_other_model_once() {
        let mut rounds = after(rounds(&[0, 1, 2, 3, 4, 5, 6, 7], SAME + 2, 1000.0, 50.0));
        let tried = std::cell::Cell::new(0);
        let is_worth_it = |_: &Recurring| {
            tried.set(tried.get() + 1);
            false
        };
        rounds.search(&[ModelId(0), ModelId(1), ModelId(2)], at(17e3), is_worth_it);
        assert_eq!(tried.get(), 5);
    }

    #[test]
    fn a_round_that_grows_is_another() {
        let mut arrivals = rounds(&[0, 2], 30, 1000.0, 50.0);
        let of_third = rounds(&[1], 20, 1000.0, 50.0);
        arrivals.extend(of_third.into_iter().map(|(us, model)| (us + 10e3, model)));
        let mut rounds = after(arrivals);
        let known = [ModelId(0), ModelId(2)];
        assert!(rounds.recurring(&known, at(30e3)).is_some());
        let larger = rounds.search(&known, at(30e3), |_| true).unwrap();
        assert_eq!(larger.models, [0, 1, 2].map(|model| (ModelId(model), 1)));
        let all = [0, 1, 2].map(ModelId);
        assert_eq!(rounds.search(&all, at(30e3), |_| true), None, "there is no more of it");
    }
}
