//! The search for the fastest candidate of one operator.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::IteratorRandom;
use weft_device::CandidateDescription;

use super::code::{Code, CompiledCode};
use super::expectation::{Expectation, Features};
use super::forecast::Forecast;
use super::learned::{self, Favourites};
use super::ledger::{Ledger, Outcome, UNTUNED};
use super::progress::Progress;
use super::space::Space;
use super::{MAX_EXHAUSTIVE, SearchError, SearchOptions, Strategy};
use crate::cost_model::{CostModel, RowError, TrainingRows};

/// By how many of its usual errors a model is thought to be wrong where it matters.
const DOUBT: f64 = 3.0;

/// The error of a model that was not judged yet.
const UNJUDGED_ERROR: f64 = 0.1;

/// The gain that is hoped for from the first trial, where no model says otherwise, and at least.
const FIRST_HOPE: f64 = 0.5;
const LEAST_HOPE: f64 = 1e-3;

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
    forecast: Forecast,
    code: Code,
    random: SmallRng,
    progress: Progress,
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
        let space = Space::new(candidates)?;
        let features = candidates.iter().flat_map(|candidate| &candidate.features).copied();
        Ok(Self {
            space,
            ledger: Ledger::new(candidates.len()),
            forecast: Forecast::new(Features::new(candidates[0].features.len(), features)),
            code: Code::new(candidates.iter().map(|candidate| candidate.code).collect()),
            random: SmallRng::seed_from_u64(options.seed),
            options,
            progress: Progress::default(),
        })
    }

    /// Has candidates that need what is compiled for others preferred.
    pub(super) fn share_code(&mut self, compiled: &CompiledCode) {
        self.code.compiled = compiled.clone();
    }

    /// Excludes a candidate for good, whatever is known of it.
    ///
    /// # Panics
    ///
    /// Like all that takes a candidate: where there is no such candidate.
    pub fn ban(&mut self, candidate: usize) {
        self.ledger.ban(candidate);
    }

    /// Goes by what `model` expects of the candidates, until it is told of another one. Says whether the model knows
    /// candidates of this kind at all.
    pub fn learn(&mut self, model: &CostModel) -> bool {
        let expectation = self.features().expected_by(model);
        expectation.map(|expectation| self.expect(&expectation)).is_some()
    }

    /// The features of its candidates.
    pub fn features(&self) -> &Features {
        self.forecast.features()
    }

    /// Goes by what is expected of its candidates, until it is told otherwise.
    pub fn expect(&mut self, expectation: &Expectation) {
        self.forecast.update(expectation, &self.ledger);
    }

    /// Takes note of how much measurements of one candidate differ, as a logarithm: what this explains is not held against
    /// a model.
    pub fn expect_noise(&mut self, noise: f64) {
        self.forecast.expect_noise(noise);
    }

    /// Adds what was measured here to the rows that a model is learned from.
    pub fn add_rows(&self, rows: &mut TrainingRows) -> Result<(), RowError> {
        self.ledger.log_ratios().into_iter().try_for_each(|(candidate, ratio)| {
            rows.push(self.features().of(candidate), ratio as f32)
        })
    }

    /// Up to `count` candidates to try, which are in flight from now on; the untuned one is the first of all. None where
    /// the search has seen enough.
    pub fn propose(&mut self, count: usize) -> Vec<usize> {
        let mut proposals = Vec::new();
        let mut favourites = None;
        while proposals.len() < count && self.has_more() {
            let Some(candidate) = self.next(&mut favourites) else { break };
            self.ledger.take(candidate);
            self.code.ask_for(candidate);
            proposals.push(candidate);
        }
        proposals
    }

    /// Notes what came of a candidate that was proposed. One that was not, such as a contender that is measured again, is
    /// not counted as a trial; the later time holds. A disqualified candidate stays disqualified.
    pub fn record(&mut self, candidate: usize, outcome: Outcome) {
        let is_trial = self.ledger.record(candidate, outcome);
        if is_trial && let Some(ratio) = self.ledger.log_ratio(candidate) {
            self.forecast.judge(candidate, ratio);
        }
        self.note(is_trial);
    }

    /// Notes what an earlier run found. It counts like a trial of this one, so that a run goes on where it was ended.
    pub fn recall(&mut self, candidate: usize, outcome: Outcome) {
        let is_trial = self.ledger.is_untried(candidate);
        self.ledger.record(candidate, outcome);
        self.note(is_trial);
    }

    fn note(&mut self, is_trial: bool) {
        let best = self.ledger.best().map(|(_, time)| time);
        if is_trial {
            self.progress.note_trial(best);
        }
        if let Some(best) = best {
            self.progress.note_best(best, self.options.worthwhile_gain);
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
        self.ledger.reference()
    }

    /// The time of a candidate, where it was measured and found right.
    pub fn time(&self, candidate: usize) -> Option<Duration> {
        self.ledger.time(candidate)
    }

    /// How many candidates were tried, in this run or an earlier one.
    pub fn trials(&self) -> usize {
        self.progress.trials()
    }

    /// How many candidates were proposed and neither recorded nor released.
    pub fn in_flight(&self) -> usize {
        self.ledger.in_flight()
    }

    /// The share of the best time that the model hopes to save with one of the untried candidates: no less than 0, and
    /// none before it has learned and something was measured.
    pub fn predicted_gain(&self) -> Option<f64> {
        self.gain_at_best(0.0)
    }

    /// The same where the model is wrong by `doubt`, in the search's favour.
    fn gain_at_best(&self, doubt: f64) -> Option<f64> {
        let (best, _) = self.ledger.best()?;
        let best = self.ledger.log_ratio(best)?;
        if !self.forecast.is_known() {
            return None;
        }
        let expected = self.ledger.untried().map(|other| self.forecast.expected(other));
        let least = expected.reduce(f64::min)? - doubt;
        Some((1.0 - (least - best).exp()).max(0.0))
    }

    /// The share of the best time that the next trials may save, to weigh searches against each other: what the model
    /// holds possible, and what was saved of late. Never 0 while there is more to propose.
    pub(super) fn hope(&self) -> f64 {
        if !self.has_more() {
            return 0.0;
        }
        let doubt = self.forecast.error().unwrap_or(UNJUDGED_ERROR);
        let possible =
            self.gain_at_best(doubt).unwrap_or(FIRST_HOPE / (1.0 + self.trials() as f64));
        ((possible + self.progress.recent_gain()) / 2.0).max(LEAST_HOPE)
    }

    /// So many trials are enough for measurements to count.
    pub(super) fn is_started_after(&self, trials: usize) -> bool {
        trials >= learned::start_length(&self.forecast)
    }

    /// Nothing is in flight, and nothing more would be proposed.
    pub fn is_done(&self) -> bool {
        self.in_flight() == 0 && !self.has_more()
    }

    /// It would propose a candidate.
    pub(super) fn has_more(&self) -> bool {
        let given_out = self.trials() + self.in_flight();
        let is_enough = match self.options.strategy {
            Strategy::Exhaustive => false,
            Strategy::Random => given_out >= self.options.max_trials,
            Strategy::Learned => {
                given_out >= self.options.max_trials
                    || self.progress.since_gain() >= self.options.patience
                    || self.expects_nothing()
            }
        };
        !is_enough && self.ledger.untried().next().is_some()
    }

    /// A model that has been right expects no worthwhile gain from anything that is left.
    fn expects_nothing(&self) -> bool {
        let Some(error) = self.forecast.error() else { return false };
        self.gain_at_best(DOUBT * error).is_some_and(|gain| gain < self.options.worthwhile_gain)
    }

    fn next(&mut self, favourites: &mut Option<Favourites>) -> Option<usize> {
        if self.ledger.is_untried(UNTUNED) {
            return Some(UNTUNED).filter(|&untuned| self.code.may_be_tried(untuned));
        }
        let Self { space, ledger, forecast, code, random, .. } = self;
        let mut open = ledger.untried().filter(|&candidate| code.may_be_tried(candidate));
        match self.options.strategy {
            Strategy::Exhaustive => open.next(),
            Strategy::Random => open.choose(random),
            Strategy::Learned => learned::next(space, ledger, forecast, code, random, favourites),
        }
    }
}
