//! How long requests take in a planned partition: the rule of [`feasible`](super::feasible), solved for the latency.

use crate::plan::check::turn_of;
use crate::plan::demand::ModelDemand;
use crate::plan::feasible::{ROUND_SHARE, Turn, growth};
use crate::plan::partition_plan::{PlannedPartition, Share};
use crate::time::Span;

/// Halvings in the search for an exponent: more than a number has digits.
const HALVINGS: u32 = 64;

/// An exponent past this says that nobody waits.
const LARGEST_THETA: f64 = 1e12;

impl PlannedPartition {
    /// For each share the latency that its model's percentile of requests is predicted to keep within: waiting and the batch
    /// itself. [`Span::MAX`] where the partition does not keep up, or where nothing was promised.
    pub fn predicted_latencies(&self, demands: &[ModelDemand<'_>]) -> Vec<Span> {
        let turn = |share: &Share| turn_of(share, self.units, demands.get(share.model.index())?);
        let turns: Option<Vec<Turn>> = self.shares.iter().map(turn).collect();
        let Some(turns) = turns else { return vec![Span::MAX; self.shares.len()] };
        predicted_latencies_s(&turns).into_iter().map(Span::from_s).collect()
    }
}

/// The latencies in seconds, by the reading of the rule under which the objectives are the farthest from being missed.
fn predicted_latencies_s(turns: &[Turn]) -> Vec<f64> {
    let round_s: f64 = turns.iter().map(|turn| turn.latency_s).sum();
    let items = turns.iter().map(|turn| (turn.rate_per_s, turn.work_s()));
    let theta = most_theta(&items.collect::<Vec<_>>());
    let in_rounds = turns.iter().map(|turn| {
        let backlog_s = turn.log_certainty / theta;
        turn.latency_s + round_s.max(round_s * ROUND_SHARE + backlog_s)
    });
    let launches = turns.iter().map(|turn| (turn.launches_per_s(), turn.latency_s));
    let theta = most_theta(&launches.collect::<Vec<_>>());
    let scattered = turns.iter().map(|turn| turn.latency_s + turn.log_certainty / theta);
    let (in_rounds, scattered): (Vec<f64>, Vec<f64>) = (in_rounds.collect(), scattered.collect());
    let worst = |latencies: &[f64]| {
        let parts = latencies.iter().zip(turns).map(|(latency_s, turn)| latency_s / turn.slo_s);
        parts.fold(0.0, f64::max)
    };
    if worst(&in_rounds) <= worst(&scattered) { in_rounds } else { scattered }
}

/// The largest exponent of Kingman's bound for work that comes in pieces, each with how many come per second and how long
/// one takes; zero where more comes than can be done.
fn most_theta(pieces: &[(f64, f64)]) -> f64 {
    let holds = |theta: f64| {
        let backlog: f64 = pieces.iter().map(|&(rate, work)| rate * growth(theta, work)).sum();
        backlog <= theta
    };
    if pieces.iter().map(|(rate, work)| rate * work).sum::<f64>() >= 1.0 {
        return 0.0;
    }
    let mut high = 1.0;
    while holds(high) {
        if high > LARGEST_THETA {
            return high;
        }
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::feasible::{HEADROOM, feasible, log_certainty};

    fn turn(rate_per_s: f64, batch: f64, latency_ms: f64, slo_ms: f64) -> Turn {
        let (latency_s, slo_s) = (latency_ms * 1e-3, slo_ms * 1e-3);
        Turn { rate_per_s, batch, latency_s, slo_s, log_certainty: log_certainty(0.99) }
    }

    #[test]
    fn an_idle_partition_answers_after_the_batch_and_an_overloaded_one_never() {
        let idle = predicted_latencies_s(&[turn(1e-3, 1.0, 2.0, 9.0)]);
        assert!((0.002..0.003).contains(&idle[0]), "{idle:?}");
        let overloaded = predicted_latencies_s(&[turn(600.0, 1.0, 2.0, 9.0)]);
        assert_eq!(overloaded, [f64::INFINITY]);
    }

    proptest! {
        #[test]
        fn objectives_are_predicted_to_hold_where_the_rule_says_so(
            parts in prop::collection::vec((1.0f64..1e3, 0usize..4, 0.2f64..3.0, 2.0f64..40.0), 1..6),
        ) {
            let turns: Vec<Turn> = parts
                .iter()
                .map(|&(rate, power, latency, slo)| turn(rate, f64::from(1 << power), latency, slo))
                .collect();
            let busy: f64 = turns.iter().map(Turn::busy).sum();
            let latencies = predicted_latencies_s(&turns);
            let worst = latencies.iter().zip(&turns).map(|(s, turn)| s / turn.slo_s).fold(0.0, f64::max);
            prop_assume!((worst - 1.0).abs() > 1e-6 && (busy / HEADROOM - 1.0).abs() > 1e-6);
            prop_assert_eq!(feasible(&turns), worst < 1.0 && busy < HEADROOM, "{}", worst);
        }
    }
}
