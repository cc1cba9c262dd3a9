//! What came of a run: for each model how many requests made it, how long they took, and what the generator added.

use weft_scheduler::{Span, Time};
use weft_simulator::Histogram;

use crate::reasons::Reasons;

/// The fewest intervals that a run is divided into, unless they were shorter than [`LEAST_INTERVAL`].
const INTERVALS: f64 = 50.0;
const LEAST_INTERVAL: Span = Span::from_nanos(1_000_000_000);

/// Of the delays with which requests were sent, this percentile must be below this limit: else the numbers are the
/// generator's and not the server's.
pub const DELAY_PERCENTILE: f64 = 0.99;
/// See [`DELAY_PERCENTILE`].
pub const MAX_DELAY: Span = Span::from_nanos(1_000_000);

/// What came of one model's requests, of those that were due after the warm-up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelOutcome {
    /// Its name.
    pub name: String,
    /// Answers are due within this time.
    pub slo: Option<Span>,
    /// Requests whose instant came.
    pub due: u64,
    /// Of these, those that were sent.
    pub sent: u64,
    /// Answered, with outputs of the right size.
    pub answered: u64,
    /// Answered within the objective; all that were answered where there is none.
    pub in_time: u64,
    /// Declined at the door, or given up for a deadline.
    pub refused: Reasons,
    /// Broken connections, wrong answers, errors, and no answer by the end.
    pub failed: Reasons,
    /// Never sent, as no connection was free and too many waited.
    pub dropped: u64,
    /// Those that found every connection busy.
    pub waited: u64,
    /// Of answers, from the instant the request was due.
    pub latencies: Histogram,
    /// From the instant a request was due to when the generator sent it, where a connection was free.
    pub send_delays: Histogram,
    /// The same where none was.
    pub connection_waits: Histogram,
    /// Over time, by the instant requests were due.
    pub intervals: Vec<Interval>,
}

/// A part of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// Requests whose instant came.
    pub due: u64,
    /// Of these, those that were answered within the objective.
    pub in_time: u64,
    /// Of answers.
    pub latencies: Histogram,
}

impl ModelOutcome {
    /// The share of requests that were answered within the objective; `None` where there is none, or nothing was due.
    pub fn attainment(&self) -> Option<f64> {
        let has_any = self.slo.is_some() && self.due > 0;
        has_any.then(|| self.in_time as f64 / self.due as f64)
    }

    /// True where requests were sent so late that latencies are the generator's too.
    pub fn fell_behind(&self) -> bool {
        self.send_delays.quantile(DELAY_PERCENTILE) > MAX_DELAY
    }

    /// Counts all that another has counted, but for its intervals.
    fn merge(&mut self, other: &ModelOutcome) {
        self.due += other.due;
        self.sent += other.sent;
        self.answered += other.answered;
        self.in_time += other.in_time;
        self.refused.merge(&other.refused);
        self.failed.merge(&other.failed);
        self.dropped += other.dropped;
        self.waited += other.waited;
        self.latencies.merge(&other.latencies);
        self.send_delays.merge(&other.send_delays);
        self.connection_waits.merge(&other.connection_waits);
    }
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// By model.
    pub models: Vec<ModelOutcome>,
    /// What was not counted at the beginning.
    pub warm_up: Span,
    /// How long requests that count were due.
    pub length: Span,
    /// How long each interval is.
    pub interval: Span,
    /// True where the run was ended before its time.
    pub is_interrupted: bool,
    /// The share of one core that the generator used.
    pub generator_load: f64,
}

impl Interval {
    fn merge(&mut self, other: &Interval) {
        self.due += other.due;
        self.in_time += other.in_time;
        self.latencies.merge(&other.latencies);
    }
}

impl Outcome {
    /// Counts what came of another part of the same run.
    pub(crate) fn merge(&mut self, other: Outcome) {
        for (model, other) in self.models.iter_mut().zip(other.models) {
            model.merge(&other);
            let intervals = model.intervals.len().max(other.intervals.len());
            model.intervals.resize(intervals, Interval::default());
            let pairs = model.intervals.iter_mut().zip(&other.intervals);
            pairs.for_each(|(interval, other)| interval.merge(other));
        }
        self.length = self.length.max(other.length);
        self.is_interrupted |= other.is_interrupted;
        self.generator_load += other.generator_load;
    }

    /// All models together, but for their intervals.
    pub fn total(&self) -> ModelOutcome {
        let mut total = ModelOutcome::default();
        self.models.iter().for_each(|model| total.merge(model));
        total
    }

    /// Of the requests of models with an objective, the share that was answered within it; `None` where there are none.
    pub fn attainment(&self) -> Option<f64> {
        let promised = || self.models.iter().filter(|model| model.slo.is_some());
        let due: u64 = promised().map(|model| model.due).sum();
        let in_time: u64 = promised().map(|model| model.in_time).sum();
        (due > 0).then(|| in_time as f64 / due as f64)
    }

    /// So many per second.
    pub fn per_s(&self, count: u64) -> f64 {
        count as f64 / self.length.seconds().max(1e-9)
    }
}

/// The length of the intervals of a run.
pub(crate) fn interval_of(length: Span) -> Span {
    (length * (1.0 / INTERVALS)).max(LEAST_INTERVAL)
}

/// The number of the interval of an instant.
pub(crate) fn interval_at(at: Time, warm_up: Span, interval: Span) -> usize {
    (at.since(Time::after_start(warm_up)).nanos() / interval.nanos().max(1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(slo: Option<Span>, due: u64, in_time: u64) -> ModelOutcome {
        ModelOutcome { slo, due, in_time, answered: in_time, ..ModelOutcome::default() }
    }

    #[test]
    fn attainment_is_of_all_that_was_due_and_promised() {
        let slo = Some(Span::from_us(1000.0));
        let models = vec![model(slo, 100, 90), model(slo, 300, 270), model(None, 1000, 1)];
        let outcome = Outcome { models, ..Outcome::default() };
        assert_eq!(outcome.attainment(), Some(0.9));
        assert_eq!(outcome.models[2].attainment(), None);
        assert_eq!(outcome.total().due, 1400);
        assert_eq!(Outcome::default().attainment(), None);
    }

    #[test]
    fn parts_of_a_run_come_to_one_outcome() {
        let part = |due: &[u64], load: f64| {
            let interval = |&due| Interval { due, ..Interval::default() };
            let intervals = due.iter().map(interval).collect();
            let model = ModelOutcome { intervals, ..model(None, due.iter().sum(), 1) };
            Outcome { models: vec![model], generator_load: load, ..Outcome::default() }
        };
        let mut whole = part(&[5, 6], 0.5);
        whole.merge(part(&[1, 2, 3], 0.25));
        assert_eq!((whole.models[0].due, whole.models[0].answered), (17, 2));
        let due: Vec<u64> = whole.models[0].intervals.iter().map(|interval| interval.due).collect();
        assert_eq!(due, [6, 8, 3]);
        assert_eq!(whole.generator_load, 0.75);
    }

    #[test]
    fn a_generator_falls_behind_when_one_in_a_hundred_is_late() {
        let mut outcome = ModelOutcome::default();
        (0..990).for_each(|_| outcome.send_delays.add(Span::from_us(50.0)));
        (0..10).for_each(|_| outcome.send_delays.add(Span::from_us(5000.0)));
        assert!(!outcome.fell_behind());
        outcome.send_delays.add(Span::from_us(5000.0));
        assert!(outcome.fell_behind());
    }

    #[test]
    fn instants_have_intervals() {
        let (warm_up, interval) = (Span::from_s(2.0), interval_of(Span::from_s(100.0)));
        assert_eq!(interval, Span::from_s(2.0));
        let at =
            |seconds: f64| interval_at(Time::after_start(Span::from_s(seconds)), warm_up, interval);
        assert_eq!([at(2.0), at(3.9), at(4.1), at(0.0)], [0, 0, 1, 0]);
        assert_eq!(interval_of(Span::from_s(3.0)), Span::from_s(1.0));
    }
}
