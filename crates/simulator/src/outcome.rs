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
    /// Of these, those that were promised nothing: they were tried.
    pub late_trials: u64,
    /// Declined at the door.
    pub refused: u64,
    /// Dropped after they were accepted.
    pub shed: u64,
    /// How often it was evicted from the batches of its group.
    pub evictions: u64,
    /// Of those answered.
    pub latencies: Histogram,
}

impl ModelOutcome {
    /// The share of requests that were answered by their deadline; 1 where none came.
    pub fn attainment(&self) -> f64 {
        share(self.in_time, self.arrived)
    }

    /// Of the requests that were accepted and promised an answer in time, the share that had it; 1 where there are none.
    pub fn promises_kept(&self) -> f64 {
        share(self.in_time, self.in_time + self.late - self.late_trials + self.shed)
    }

    /// Counts what another has counted.
    pub fn merge(&mut self, other: &ModelOutcome) {
        self.arrived += other.arrived;
        self.in_time += other.in_time;
        self.late += other.late;
        self.late_trials += other.late_trials;
        self.refused += other.refused;
        self.shed += other.shed;
        self.evictions += other.evictions;
        self.latencies.merge(&other.latencies);
    }

    /// The latency that a share of the answers kept within, from 0 to 1; zero where there are none.
    pub fn latency(&self, quantile: f64) -> Span {
        self.latencies.quantile(quantile)
    }
}

/// How often a policy changed partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconfigurations {
    /// Partitions made ready, or made ready for further models.
    pub prepared: u64,
    /// Partitions that took their units.
    pub activated: u64,
    /// Partitions that gave them back.
    pub deactivated: u64,
}

impl Reconfigurations {
    /// Counts what another has counted.
    pub fn merge(&mut self, other: Reconfigurations) {
        self.prepared += other.prepared;
        self.activated += other.activated;
        self.deactivated += other.deactivated;
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
    /// What the policy changed, the first partitions included.
    pub reconfigurations: Reconfigurations,
    /// Launches of batches of different models together.
    pub mixed_launches: u64,
}

impl Outcome {
    /// All models together.
    pub fn total(&self) -> ModelOutcome {
        let mut total = ModelOutcome::default();
        self.models.iter().for_each(|model| total.merge(model));
        total
    }

    /// The share of all requests that were answered by their deadline.
    pub fn attainment(&self) -> f64 {
        self.of_all(|model| model.in_time, |model| model.arrived)
    }

    /// Of all requests that were accepted and promised an answer in time, the share that had it.
    pub fn promises_kept(&self) -> f64 {
        let promised = |model: &ModelOutcome| model.arrived - model.refused - model.late_trials;
        self.of_all(|model| model.in_time, promised)
    }

    fn of_all(
        &self,
        part: impl Fn(&ModelOutcome) -> u64,
        whole: impl Fn(&ModelOutcome) -> u64,
    ) -> f64 {
        share(self.models.iter().map(part).sum(), self.models.iter().map(whole).sum())
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_answers() {
        let mut outcome =
            ModelOutcome { arrived: 120, in_time: 90, late: 10, refused: 20, ..Default::default() };
        (1..=100).rev().for_each(|us| outcome.latencies.add(Span::from_us(f64::from(us))));
        assert!((outcome.latency(0.5).us() - 50.0).abs() < 0.5);
        assert_eq!(outcome.latency(1.0), Span::from_us(100.0));
        assert_eq!((outcome.attainment(), outcome.promises_kept()), (0.75, 0.9));
        let both = Outcome { models: vec![outcome.clone(), outcome.clone()], ..Default::default() };
        assert_eq!((both.attainment(), both.promises_kept()), (0.75, 0.9));
        assert_eq!((both.total().arrived, both.total().latencies.count()), (240, 200));
        assert_eq!(Outcome::default().promises_kept(), 1.0);
    }
}
