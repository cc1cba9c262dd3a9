//! What is known of each candidate of one operator.

use std::time::Duration;

/// The candidate that is taken where nothing is known: the first that a device lists.
pub(super) const UNTUNED: usize = 0;

/// What came of a candidate, as far as a search has to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its results are right, and one run takes this long.
    Time(Duration),
    /// Its results are wrong, or it cannot be run: it must never be chosen.
    Disqualified,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Untried,
    InFlight,
    Measured(Duration),
    Disqualified,
    Banned,
}

/// The states of all candidates, with the fastest of them.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    states: Vec<State>,
    in_flight: usize,
}

impl Ledger {
    pub(super) fn new(candidates: usize) -> Self {
        Self { states: vec![State::Untried; candidates], in_flight: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub(super) fn is_untried(&self, candidate: usize) -> bool {
        self.states[candidate] == State::Untried
    }

    pub(super) fn untried(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).filter(|&candidate| self.is_untried(candidate))
    }

    /// Those that were given out, whatever came of it.
    pub(super) fn tried(&self) -> impl Iterator<Item = usize> + '_ {
        let states = self.states.iter().enumerate();
        states
            .filter(|(_, state)| !matches!(state, State::Untried | State::Banned))
            .map(|(candidate, _)| candidate)
    }

    pub(super) fn time(&self, candidate: usize) -> Option<Duration> {
        match self.states[candidate] {
            State::Measured(time) => Some(time),
            _ => None,
        }
    }

    /// What others are compared with.
    pub(super) fn reference(&self) -> Option<Duration> {
        self.time(UNTUNED).or_else(|| self.measured().next().map(|(_, time)| time))
    }

    /// The logarithm of a candidate's time relative to the reference.
    pub(super) fn log_ratio(&self, candidate: usize) -> Option<f64> {
        let reference = self.reference()?.as_secs_f64();
        Some((self.time(candidate)?.as_secs_f64() / reference).ln())
    }

    /// Those of all that were measured.
    pub(super) fn log_ratios(&self) -> Vec<(usize, f64)> {
        let Some(reference) = self.reference() else { return Vec::new() };
        let ratio = |time: Duration| (time.as_secs_f64() / reference.as_secs_f64()).ln();
        self.measured().map(|(candidate, time)| (candidate, ratio(time))).collect()
    }

    pub(super) fn measured(&self) -> impl Iterator<Item = (usize, Duration)> + '_ {
        (0..self.len()).filter_map(|candidate| Some((candidate, self.time(candidate)?)))
    }

    /// All that were measured, the fastest first, equal ones in their order.
    pub(super) fn by_time(&self) -> Vec<(usize, Duration)> {
        let mut measured: Vec<_> = self.measured().collect();
        measured.sort_by_key(|&(candidate, time)| (time, candidate));
        measured
    }

    pub(super) fn best(&self) -> Option<(usize, Duration)> {
        self.measured().min_by_key(|&(candidate, time)| (time, candidate))
    }

    /// Marks an untried candidate as given out.
    pub(super) fn take(&mut self, candidate: usize) {
        assert!(self.is_untried(candidate), "candidate {candidate} was given out before");
        self.set(candidate, State::InFlight);
    }

    /// Makes a candidate that was given out untried again; says whether it was given out.
    pub(super) fn release(&mut self, candidate: usize) -> bool {
        let was_in_flight = self.states[candidate] == State::InFlight;
        if was_in_flight {
            self.set(candidate, State::Untried);
        }
        was_in_flight
    }

    /// Notes what came of a candidate; says whether it had been given out. A later time replaces an earlier one, but
    /// nothing makes up for a disqualification or a ban.
    pub(super) fn record(&mut self, candidate: usize, outcome: Outcome) -> bool {
        let before = self.states[candidate];
        match (before, outcome) {
            (State::Disqualified | State::Banned, _) => {}
            (_, Outcome::Time(time)) => {
                // A clock that saw no time pass must not divide by it.
                self.set(candidate, State::Measured(time.max(Duration::from_nanos(1))));
            }
            (_, Outcome::Disqualified) => self.set(candidate, State::Disqualified),
        }
        before == State::InFlight
    }

    pub(super) fn ban(&mut self, candidate: usize) {
        self.set(candidate, State::Banned);
    }

    fn set(&mut self, candidate: usize, state: State) {
        let flies = |state| usize::from(state == State::InFlight);
        self.in_flight = self.in_flight + flies(state) - flies(self.states[candidate]);
        self.states[candidate] = state;
    }
}
