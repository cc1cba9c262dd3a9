//! Which operator gets the next trials: the one where they promise to save the most of the models' time.

use super::code::CompiledCode;
use super::expectation::Features;
use super::{Outcome, Search};
use crate::cost_model::{RowError, TrainingRows};

/// A candidate of an operator, to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Proposal {
    /// Which operator, in the order in which they were added.
    pub operator: usize,
    /// Which of its candidates.
    pub candidate: usize,
}

/// The searches for all operators of a run, and what they may cost together.
///
/// Every operator gets its start before any gets more. After that, trials go where the time that an operator takes in the
/// models, times the share of it that the next trials may save, is the greatest.
#[derive(Clone, Debug)]
pub struct Effort {
    operators: Vec<Operator>,
    max_trials: usize,
    compiled: CompiledCode,
}

#[derive(Clone, Debug)]
struct Operator {
    search: Search,
    occurrences: f64,
}

impl Operator {
    /// What the next trial is worth: first of all the untuned time, without which nothing can be weighed, then a start,
    /// then what may be saved. Trials that are on their way share in it.
    fn worth(&self, coming: usize) -> (Stage, f64) {
        let coming = coming + self.search.in_flight();
        let stage = match self.search.trials() + coming {
            0 => Stage::Untuned,
            trials if !self.search.is_started_after(trials) => Stage::Start,
            _ => Stage::Search,
        };
        let time = self.search.best().map_or(1.0, |(_, time)| time.as_secs_f64());
        (stage, self.occurrences * time * self.search.hope() / (1.0 + coming as f64))
    }
}

/// What comes later is greater in worth.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Stage {
    Search,
    Start,
    Untuned,
}

impl Effort {
    /// No operators yet; up to `max_trials` candidates of all of them will be proposed.
    pub fn new(max_trials: usize) -> Self {
        Self { operators: Vec::new(), max_trials, compiled: CompiledCode::default() }
    }

    /// Adds an operator that the models compute so often, each time weighted by how much it matters; says which one it is.
    /// What one operator's candidates need compiled is there for those of the others.
    pub fn add(&mut self, mut search: Search, occurrences: f64) -> usize {
        search.share_code(&self.compiled);
        let occurrences = if occurrences.is_finite() { occurrences.max(0.0) } else { 0.0 };
        self.operators.push(Operator { search, occurrences });
        self.operators.len() - 1
    }

    /// The searches, in the order in which they were added.
    pub fn searches(&self) -> impl ExactSizeIterator<Item = &Search> {
        self.operators.iter().map(|operator| &operator.search)
    }

    /// The search for one operator.
    ///
    /// # Panics
    ///
    /// Like all that takes an operator: where there is no such operator.
    pub fn search(&self, operator: usize) -> &Search {
        &self.operators[operator].search
    }

    /// The search for one operator, to tell it what is known.
    pub fn search_mut(&mut self, operator: usize) -> &mut Search {
        &mut self.operators[operator].search
    }

    /// Up to `count` candidates to try, which are in flight from now on, the most promising first. None where all have
    /// seen enough.
    pub fn next(&mut self, count: usize) -> Vec<Proposal> {
        self.next_within(count, usize::MAX)
    }

    /// Like [`Self::next`], with at most `compiles` candidates among them for which something new has to be compiled.
    pub fn next_within(&mut self, count: usize, compiles: usize) -> Vec<Proposal> {
        self.compiled.allow(compiles);
        self.draw_all(count)
    }

    /// Up to `count` candidates, for each of which something new has to be compiled.
    pub fn next_to_compile(&mut self, count: usize) -> Vec<Proposal> {
        self.compiled.want(count);
        let proposals = self.draw_all(count);
        self.compiled.allow(0);
        proposals
    }

    fn draw_all(&mut self, count: usize) -> Vec<Proposal> {
        let mut proposals = Vec::new();
        let mut is_open: Vec<bool> = self.searches().map(Search::has_more).collect();
        while proposals.len() < count {
            let left = (count - proposals.len()).min(self.trials_left());
            let shares = self.share_out(left, &is_open);
            if shares.is_empty() {
                break;
            }
            proposals.extend(self.draw(&shares, &mut is_open));
        }
        proposals
    }

    /// Notes what came of a proposal; see [`Search::record`].
    pub fn record(&mut self, proposal: Proposal, outcome: Outcome) {
        self.search_mut(proposal.operator).record(proposal.candidate, outcome);
    }

    /// Tells all searches how much measurements of one candidate differ; see [`Search::expect_noise`].
    pub fn expect_noise(&mut self, noise: f64) {
        self.operators.iter_mut().for_each(|operator| operator.search.expect_noise(noise));
    }

    /// Takes back a proposal that could not be tried, through no fault of its own.
    pub fn release(&mut self, proposal: Proposal) {
        self.search_mut(proposal.operator).release(proposal.candidate);
    }

    /// Adds what was measured in all searches to the rows that a model is learned from.
    pub fn add_rows(&self, rows: &mut TrainingRows) -> Result<(), RowError> {
        self.searches().try_for_each(|search| search.add_rows(rows))
    }

    /// The features of the candidates of all searches that are not done.
    pub fn open_features(&self) -> Vec<(usize, Features)> {
        let open = self.searches().enumerate().filter(|(_, search)| !search.is_done());
        open.map(|(operator, search)| (operator, search.features().clone())).collect()
    }

    /// How many things were compiled, or are about to be, for what was proposed.
    pub fn compiled(&self) -> usize {
        self.compiled.len()
    }

    /// How many candidates were proposed, and tried or still in flight.
    pub fn trials(&self) -> usize {
        self.searches().map(|search| search.trials() + search.in_flight()).sum()
    }

    /// Nothing is in flight, and nothing more would be proposed.
    pub fn is_done(&self) -> bool {
        self.searches().all(|search| search.in_flight() == 0)
            && (self.trials_left() == 0 || !self.searches().any(Search::has_more))
    }

    fn trials_left(&self) -> usize {
        self.max_trials.saturating_sub(self.trials())
    }

    /// The operators that the next `count` trials go to, in order.
    fn share_out(&self, count: usize, is_open: &[bool]) -> Vec<usize> {
        let mut coming = vec![0; self.operators.len()];
        let mut shares = Vec::with_capacity(count);
        let mut worths: Vec<_> = self.operators.iter().map(|operator| operator.worth(0)).collect();
        for _ in 0..count {
            let open = (0..self.operators.len()).filter(|&operator| is_open[operator]);
            // The first of equals wins, so that a run can be repeated.
            let better =
                |best: usize, next: usize| if worths[next] > worths[best] { next } else { best };
            let Some(operator) = open.reduce(better) else { break };
            coming[operator] += 1;
            worths[operator] = self.operators[operator].worth(coming[operator]);
            shares.push(operator);
        }
        shares
    }

    /// Asks the searches for candidates; one that has fewer than its share is closed.
    fn draw(&mut self, shares: &[usize], is_open: &mut [bool]) -> Vec<Proposal> {
        let mut wanted = vec![0; self.operators.len()];
        shares.iter().for_each(|&operator| wanted[operator] += 1);
        let mut drawn: Vec<_> = self
            .operators
            .iter_mut()
            .zip(&wanted)
            .zip(is_open)
            .map(|((operator, &wanted), is_open)| {
                let candidates = operator.search.propose(wanted);
                *is_open &= candidates.len() == wanted;
                candidates.into_iter()
            })
            .collect();
        let proposal = |&operator: &usize| {
            drawn[operator].next().map(|candidate| Proposal { operator, candidate })
        };
        shares.iter().filter_map(proposal).collect()
    }
}
