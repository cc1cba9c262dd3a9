//! How a search has fared: its trials, and when they last paid.

use std::collections::VecDeque;
use std::time::Duration;

/// Over how many trials a recent gain is looked for.
const RECENT_TRIALS: usize = 8;

/// Counts trials, and what they gained.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    trials: usize,
    since_gain: usize,
    /// The best time when it last fell by what is worthwhile.
    milestone: Option<Duration>,
    /// The best time after each of the last trials.
    bests: VecDeque<Duration>,
}

impl Progress {
    pub(super) fn trials(&self) -> usize {
        self.trials
    }

    /// How many trials came since the best time last fell by what is worthwhile.
    pub(super) fn since_gain(&self) -> usize {
        self.since_gain
    }

    /// The share of the best time that the last trials saved.
    pub(super) fn recent_gain(&self) -> f64 {
        let ends = self.bests.front().zip(self.bests.back());
        ends.map_or(0.0, |(before, now)| 1.0 - now.as_secs_f64() / before.as_secs_f64()).max(0.0)
    }

    /// Counts one more trial, after which this is the best time.
    pub(super) fn note_trial(&mut self, best: Option<Duration>) {
        self.trials += 1;
        self.since_gain += 1;
        if self.bests.len() > RECENT_TRIALS {
            self.bests.pop_front();
        }
        self.bests.extend(best);
    }

    /// Compares the best time with what it was, by whatever it became known.
    pub(super) fn note_best(&mut self, best: Duration, worthwhile_gain: f64) {
        let limit = |milestone: Duration| milestone.as_secs_f64() * (1.0 - worthwhile_gain);
        if self.milestone.is_none_or(|milestone| best.as_secs_f64() <= limit(milestone)) {
            self.milestone = Some(best);
            self.since_gain = 0;
        }
    }
}
