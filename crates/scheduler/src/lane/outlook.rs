//! When something will be done, and how surely.
//!
//! Batches run one after the other, so durations add up, and so do their errors, of two kinds. What a batch strays from its
//! prediction has nothing to do with what the next one does: such errors partly cancel, and their squares add up. What
//! the latency function is wrong about, it is wrong about for all of them: such errors add up as they are, but they are
//! smaller, since the function learns from many completions.

use crate::time::{Span, Time};

/// The variance of what all predictions of a model have in common, as a share of that of a single duration: that of a
/// running average over about a dozen completions.
const COMMON_VARIANCE: f64 = 0.05;

/// How long a batch takes: predicted, and the standard deviation of that in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    pub(super) duration: Span,
    pub(super) deviation_ns: f64,
}

impl Cost {
    pub(super) fn new(duration: Span, spread: f64) -> Self {
        Self { duration, deviation_ns: duration.nanos() as f64 * spread }
    }
}

/// What several batches cost together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Work {
    duration: Span,
    /// Of deviations: of their squares, and of themselves.
    squares: f64,
    sum: f64,
}

impl Work {
    /// With one more batch.
    pub(super) fn with(self, cost: Cost) -> Self {
        Self {
            duration: self.duration + cost.duration,
            squares: self.squares + cost.deviation_ns * cost.deviation_ns,
            sum: self.sum + cost.deviation_ns,
        }
    }
}

/// The end of a sequence of batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outlook {
    /// On average.
    pub(super) at: Time,
    squares: f64,
    sum: f64,
}

impl Outlook {
    /// An instant that is known, but for the end of what runs.
    pub(super) fn from(at: Time, deviation_ns: f64) -> Self {
        Self { at, squares: deviation_ns * deviation_ns, sum: deviation_ns }
    }

    /// After one more batch.
    pub(super) fn then(self, cost: Cost) -> Self {
        self.after(Work::default().with(cost))
    }

    /// After several.
    pub(super) fn after(self, work: Work) -> Self {
        Self {
            at: self.at + work.duration,
            squares: self.squares + work.squares,
            sum: self.sum + work.sum,
        }
    }

    /// The same, so much later.
    pub(super) fn later(self, span: Span) -> Self {
        Self { at: self.at + span, ..self }
    }

    fn variance(self) -> f64 {
        self.squares + COMMON_VARIANCE * self.sum * self.sum
    }

    /// Whether it will be there by a deadline, with so many standard deviations in reserve.
    pub(super) fn keeps(self, deadline: Time, certainty: f64) -> bool {
        let slack_ns = deadline.since(self.at).nanos() as f64;
        // Squared, as roots take long.
        self.at <= deadline && slack_ns * slack_ns >= certainty * certainty * self.variance()
    }

    /// By when it will be there, with so many standard deviations in reserve.
    pub(super) fn surely_at(self, certainty: f64) -> Time {
        self.at + Span::from_nanos((certainty * self.variance().sqrt()).ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_errors_partly_cancel() {
        let cost = Cost::new(Span::from_us(100.0), 0.05);
        let margin = |count: usize| {
            let outlook =
                (0..count).fold(Outlook::from(Time::START, 0.0), |outlook, _| outlook.then(cost));
            assert_eq!(outlook.at, Time::START + Span::from_us(100.0 * count as f64));
            outlook.surely_at(2.0).since(outlook.at).us()
        };
        assert!(margin(1) > 10.0 && margin(1) < 10.5, "{}", margin(1));
        assert!(margin(9) > 3.0 * margin(1) && margin(9) < 4.0 * margin(1), "{}", margin(9));
    }

    #[test]
    fn what_is_sure_is_kept() {
        let outlook = Outlook::from(Time::START, 700.0).then(Cost::new(Span::from_us(7.0), 0.1));
        let sure = outlook.surely_at(2.0);
        assert!(outlook.keeps(sure, 2.0) && outlook.keeps(Time::NEVER, 2.0));
        assert!(!outlook.keeps(sure, 2.1) && !outlook.keeps(outlook.at, 2.0));
        assert!(outlook.keeps(outlook.at, 0.0) && !outlook.keeps(Time::START, 0.0));
        let known = Outlook::from(sure, 0.0);
        assert!(known.keeps(sure, 2.0) && known.surely_at(2.0) == sure);
    }
}
