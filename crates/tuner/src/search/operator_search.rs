//! The search for the fastest candidate of one operator.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use weft_device::CandidateDescription;

use super::ledger::{Ledger, Outcome};
use super::space::Space;
use super::start;
use super::{MAX_EXHAUSTIVE, SearchError, SearchOptions, Strategy};

/// The candidate that is taken where nothing is known: the first that a device lists.
const UNTUNED: usize = 0;

/// Decides which candidates of one operator are tried, in which order, and when it is enough.
///
/// Candidates are named by their position in the device's list. Whoever drives the search calls [`propose`] for
/// candidates to measure and [`record`] with what came of each, in any order and with any number of them in flight.
///
/// [`propose`]: Search::propose
/// [`record`]: Search::record
#[derive(Clone, Debug)]
pub struct Search {
    options: SearchOptions,
    space: Space,
    ledger: Ledger,
    random: SmallRng,
    /// How many candidates were given out and came back.
    trials: usize,
    /// How many of these came since the best time last fell by what is worthwhile.
    trials_without_gain: usize,
    /// The best time when it last fell by what is worthwhile.
    milestone: Option<Duration>,
}

impl Search {
    /// A search among an operator's candidates, none of which was tried.
    pub fn new(
        candidates: &[CandidateDescription],
        options: SearchOptions,
    ) -> Result<Self, SearchError> {
        if options.strategy == Strategy::Exhaustive && candidates.len() > MAX_EXHAUSTIVE {
            return Err(SearchError::TooMany { candidates: candidates.len() });
        }
        Ok(Self {
            space: Space::new(candidates)?,
            ledger: Ledger::new(candidates.len()),
            random: SmallRng::seed_from_u64(options.seed),
            options,
            trials: 0,
            trials_without_gain: 0,
            milestone: None,
        })
    }

    /// Excludes a candidate for good, whatever is known of it.
    ///
    /// # Panics
    ///
    /// Like all that takes a candidate: where there is no such candidate.
    pub fn ban(&mut self, candidate: usize) {
        self.ledger.ban(candidate);
    }

    /// Up to `count` candidates to try, which are in flight from now on; the untuned one is the first of all. None where
    /// the search has seen enough.
    pub fn propose(&mut self, count: usize) -> Vec<usize> {
        let mut proposals = Vec::new();
        while proposals.len() < count && self.has_more() {
            let Some(candidate) = self.next() else { break };
            self.ledger.take(candidate);
            proposals.push(candidate);
        }
        proposals
    }

    /// Notes what came of a candidate. Also for what was known before the search, which is not counted as a trial, and
    /// for measuring again, where the later time holds. A disqualified candidate stays disqualified.
    pub fn record(&mut self, candidate: usize, outcome: Outcome) {
        if self.ledger.record(candidate, outcome) {
            self.trials += 1;
            self.trials_without_gain += 1;
        }
        let Some((_, best)) = self.ledger.best() else { return };
        let has_gained = self.milestone.is_none_or(|milestone| {
            best.as_secs_f64() <= milestone.as_secs_f64() * (1.0 - self.options.worthwhile_gain)
        });
        if has_gained {
            self.milestone = Some(best);
            self.trials_without_gain = 0;
        }
    }

    /// Takes back a candidate that was proposed and could not be tried, through no fault of its own.
    pub fn release(&mut self, candidate: usize) {
        self.ledger.release(candidate);
    }

    /// The fastest candidate so far, and its time.
    pub fn best(&self) -> Option<(usize, Duration)> {
        self.ledger.best()
    }

    /// The candidates whose time is at most the best one's times `1 + noise`, the fastest first.
    pub fn contenders(&self, noise: f64) -> Vec<usize> {
        let by_time = self.ledger.by_time();
        let Some(&(_, best)) = by_time.first() else { return Vec::new() };
        let limit = best.as_secs_f64() * (1.0 + noise.max(0.0));
        let within = by_time.iter().take_while(|(_, time)| time.as_secs_f64() <= limit);
        within.map(|&(candidate, _)| candidate).collect()
    }

    /// The time that others are compared with: the untuned candidate's, or where that one has none, the first-listed
    /// candidate's that has.
    pub fn reference(&self) -> Option<Duration> {
        self.ledger.time(UNTUNED).or_else(|| self.ledger.measured().next().map(|(_, time)| time))
    }

    /// The time of a candidate, where it was measured and found right.
    pub fn time(&self, candidate: usize) -> Option<Duration> {
        self.ledger.time(candidate)
    }

    /// How many candidates were proposed and tried.
    pub fn trials(&self) -> usize {
        self.trials
    }

    /// How many candidates were proposed and neither recorded nor released.
    pub fn in_flight(&self) -> usize {
        self.ledger.in_flight()
    }

    /// Nothing is in flight, and nothing more would be proposed.
    pub fn is_done(&self) -> bool {
        self.in_flight() == 0 && !self.has_more()
    }

    fn has_more(&self) -> bool {
        let given_out = self.trials + self.in_flight();
        let is_enough = match self.options.strategy {
            Strategy::Exhaustive => false,
            Strategy::Random => given_out >= self.options.max_trials,
            Strategy::Learned => {
                given_out >= self.options.max_trials
                    || self.trials_without_gain >= self.options.patience
            }
        };
        !is_enough && self.ledger.untried().next().is_some()
    }

    fn next(&mut self) -> Option<usize> {
        if self.ledger.is_untried(UNTUNED) {
            return Some(UNTUNED);
        }
        match self.options.strategy {
            Strategy::Exhaustive => self.ledger.untried().next(),
            Strategy::Random => self.any(),
            Strategy::Learned => start::diverse(&self.space, &self.ledger),
        }
    }

    fn any(&mut self) -> Option<usize> {
        let untried: Vec<usize> = self.ledger.untried().collect();
        (!untried.is_empty()).then(|| untried[self.random.random_range(0..untried.len())])
    }
}
