//! What came of a run: for each model how many requests made it, and how long they took.

use weft_scheduler::Span;

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
    /// Of those answered, in the order of answering.
    pub latencies: Vec<Span>,
}

impl ModelOutcome {
    /// The share of requests that were answered by their deadline; 1 where none came.
    pub fn attainment(&self) -> f64 {
        if self.arrived == 0 { 1.0 } else { self.in_time as f64 / self.arrived as f64 }
    }

    /// The latency that a share of the answers kept within, from 0 to 1; zero where there are none.
    pub fn latency(&self, quantile: f64) -> Span {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        let at = ((sorted.len() as f64 * quantile).ceil() as usize).saturating_sub(1).min(last);
        sorted.get(at).copied().unwrap_or(Span::ZERO)
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
        let latencies = (1..=100).rev().map(|us| Span::from_us(f64::from(us))).collect();
        let outcome =
            ModelOutcome { arrived: 120, in_time: 90, late: 10, latencies, ..Default::default() };
        assert_eq!(outcome.latency(0.5), Span::from_us(50.0));
        assert_eq!(outcome.latency(0.99), Span::from_us(99.0));
        assert_eq!(outcome.latency(1.0), Span::from_us(100.0));
        assert_eq!(outcome.attainment(), 0.75);
        assert_eq!(ModelOutcome::default().latency(0.5), Span::ZERO);
    }
}
