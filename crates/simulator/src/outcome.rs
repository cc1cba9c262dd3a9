//! What came of a run: for each model how many requests made it, and how long they took.

use weft_scheduler::Span;

use crate::histogram::Histogram;

/// What came of one model's requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelOutcome {
    /// Requests that came.
    pub arrived: u64,
    /// Answered by their deadline.
    pub in_time: u64,
    /// Answered after it.
    pub late: u64,
    /// Declined at the door.
    pub refused: u64,
    /// Dropped after they were accepted.
    pub shed: u64,
    /// Of those answered.
    pub latencies: Histogram,
}

impl ModelOutcome {
    /// The share of requests that were answered by their deadline; 1 where none came.
    pub fn attainment(&self) -> f64 {
        if self.arrived == 0 { 1.0 } else { self.in_time as f64 / self.arrived as f64 }
    }

    /// The latency that a share of the answers kept within, from 0 to 1; zero where there are none.
    pub fn latency(&self, quantile: f64) -> Span {
        self.latencies.quantile(quantile)
    }
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// By model.
    pub models: Vec<ModelOutcome>,
    /// Unit-seconds in which units ran something.
    pub busy_unit_seconds: f64,
    /// When the last request was done with.
    pub length: Span,
}

impl Outcome {
    /// The share of all requests that were answered by their deadline.
    pub fn attainment(&self) -> f64 {
        let arrived: u64 = self.models.iter().map(|model| model.arrived).sum();
        let in_time: u64 = self.models.iter().map(|model| model.in_time).sum();
        if arrived == 0 { 1.0 } else { in_time as f64 / arrived as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_answers() {
        let mut outcome =
            ModelOutcome { arrived: 120, in_time: 90, late: 10, ..Default::default() };
        (1..=100).rev().for_each(|us| outcome.latencies.add(Span::from_us(f64::from(us))));
        assert!((outcome.latency(0.5).us() - 50.0).abs() < 0.5);
        assert_eq!(outcome.latency(1.0), Span::from_us(100.0));
        assert_eq!(outcome.attainment(), 0.75);
    }
}
