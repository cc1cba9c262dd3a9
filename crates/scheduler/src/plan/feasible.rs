//! When models that take turns in one partition keep their objectives: the one rule that plans and lanes share.
//!
//! # The rule
//!
//! In a partition, model `i` is given the rate `r_i` and runs at most `b_i` items together, which takes `L_i`. Its items
//! may wait `S_i = SLO_i - L_i` before they start, and a share `e_i = 1 - percentile_i` of them may wait longer. Arrivals
//! are taken to be independent of each other (Poisson). Let `C = sum of L_j`, the longest turn of everyone.
//!
//! 1. **Utilisation.** `sum of r_j L_j / b_j <= HEADROOM`: with full batches, which is what a backlog makes of them, the
//!    partition keeps up, and latencies that are somewhat longer than profiled do not tip it over.
//! 2. **Waiting.** One of two readings must hold, for all models of the partition:
//!    * *Rounds*, for busy partitions. Everyone gets a turn once per `C`, and gathers its batch while the others (and its
//!      own previous batch) run. So `C <= S_i`, for the item that just missed its turn. A burst adds backlog to that: an item
//!      of model `j` brings `L_j / b_j` of work. An item comes at any point of the round, and seldom just
//!      after its turn and into a burst at once: [`ROUND_SHARE`] of the round is set aside, and the backlog may take the
//!      rest of `S_i`.
//!    * *Scattered launches*, for rarely used partitions, where a whole round almost never comes together. Each launch is
//!      work of `L_j`, and there are `r_j / min(b_j, 1 + r_j L_j)` of them per second: a launch takes along what came
//!      while the one before it ran. This backlog includes what runs already and may take `S_i`.
//!
//! # Why backlogs stay that short
//!
//! For work that arrives as independent pieces `w_j` at `a_j` per second and is done in order, Kingman's bound says
//! `P(wait > t) <= exp(-theta t)` for every `theta > 0` with `sum of a_j (exp(theta w_j) - 1) <= theta`. The left side minus
//! the right is convex in `theta` and zero at zero, so what holds for one `theta` holds for all smaller ones. The wait that
//! is asked for, `exp(-theta t) <= e_i`, needs `theta_i = ln(1 / e_i) / t`; testing the largest `theta_i` tests all.
//!
//! Every term grows with every rate, and shrinks when a model leaves or when all take less time. So lower rates, fewer
//! models and more units never break the rule, and the most that a model may be given beside
//! others is found by solving for it, without a search.

/// The share of its time that a partition may be planned to be busy; the rest is for latencies longer than profiled.
pub const HEADROOM: f64 = 0.9;

/// The share of a round that an item waits for its turn when a burst makes it wait as well: half is the average, and a
/// played lane tells how much more it must be for the percentile to hold.
pub(crate) const ROUND_SHARE: f64 = 0.7;

/// The smallest share of late requests that is told from none: a promise for every request is planned as this.
const LEAST_LATE: f64 = 1e-6;

/// Past this, no rate is low enough anyway.
const LARGEST_EXPONENT: f64 = 300.0;

/// The relative difference between sums that comes from the order of adding.
const ROUNDING: f64 = 1e-9;

/// One model's turns in a partition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// Items per second that it is given here.
    pub rate_per_s: f64,
    /// The most items that run together.
    pub batch: f64,
    /// How long that many take.
    pub latency_s: f64,
    /// What was promised for each item.
    pub slo_s: f64,
    /// `ln(1 / (1 - percentile))`: see [`log_certainty`].
    pub log_certainty: f64,
}

/// How strict a percentile is, in the form that [`Turn`] holds it.
pub fn log_certainty(percentile: f64) -> f64 {
    -(1.0 - percentile).clamp(LEAST_LATE, 1.0).ln()
}

impl Turn {
    /// The share of the partition's time that this takes, in full batches.
    pub fn busy(&self) -> f64 {
        self.rate_per_s * self.work_s()
    }

    /// The time that one item takes of the partition in a full batch.
    pub(crate) fn work_s(&self) -> f64 {
        self.latency_s / self.batch
    }

    /// How long an item may wait before it starts.
    fn slack_s(&self) -> f64 {
        self.slo_s - self.latency_s
    }

    pub(crate) fn launches_per_s(&self) -> f64 {
        self.rate_per_s / self.batch.min(1.0 + self.rate_per_s * self.latency_s)
    }
}

/// Whether models that take these turns in one partition keep their objectives.
pub fn feasible(turns: &[Turn]) -> bool {
    let round_s: f64 = turns.iter().map(|turn| turn.latency_s).sum();
    let busy: f64 = turns.iter().map(Turn::busy).sum();
    let in_rounds = || {
        let theta = strictest(turns.iter(), round_s * ROUND_SHARE);
        let backlog = turns.iter().map(|turn| turn.rate_per_s * growth(theta, turn.work_s()));
        turns.iter().all(|turn| turn.slack_s() >= round_s) && within(backlog.sum(), theta)
    };
    let scattered = || {
        let theta = strictest(turns.iter(), 0.0);
        let launched = |turn: &Turn| turn.launches_per_s() * growth(theta, turn.latency_s);
        let backlog = turns.iter().map(launched);
        turns.iter().all(|turn| turn.slack_s() > 0.0) && within(backlog.sum(), theta)
    };
    within(busy, HEADROOM) && (in_rounds() || scattered())
}

/// Whether a sum stays within a limit, whatever the order in which it was added up.
fn within(sum: f64, limit: f64) -> bool {
    sum <= limit * (1.0 + ROUNDING)
}

/// The highest rate at which a model keeps its objective beside others, and they theirs: its own rate is not looked at.
/// Zero where it cannot be added at all, or where the others are infeasible without it.
pub fn most_rate(others: &[Turn], added: &Turn) -> f64 {
    let round_s = others.iter().map(|turn| turn.latency_s).sum::<f64>() + added.latency_s;
    let spare = HEADROOM - others.iter().map(Turn::busy).sum::<f64>();
    let by_utilisation = spare / added.work_s();
    let by_waiting = most_in_rounds(others, added, round_s).max(most_scattered(others, added));
    by_utilisation.min(by_waiting).max(0.0)
}

fn most_in_rounds(others: &[Turn], added: &Turn, round_s: f64) -> f64 {
    let turns = || others.iter().chain([added]);
    if turns().any(|turn| turn.slack_s() < round_s) {
        return 0.0;
    }
    let theta = strictest(turns(), round_s * ROUND_SHARE);
    let backlog: f64 =
        others.iter().map(|turn| turn.rate_per_s * growth(theta, turn.work_s())).sum();
    (theta - backlog) / growth(theta, added.work_s())
}

fn most_scattered(others: &[Turn], added: &Turn) -> f64 {
    let turns = || others.iter().chain([added]);
    if turns().any(|turn| turn.slack_s() <= 0.0) {
        return 0.0;
    }
    let theta = strictest(turns(), 0.0);
    let launched = |turn: &Turn| turn.launches_per_s() * growth(theta, turn.latency_s);
    let backlog: f64 = others.iter().map(launched).sum();
    let launches_per_s = (theta - backlog) / growth(theta, added.latency_s);
    // Launches per second are the larger of rate / batch and rate / (1 + rate * latency): both must stay within the limit.
    let busy = launches_per_s * added.latency_s;
    let by_gathering = if busy < 1.0 { launches_per_s / (1.0 - busy) } else { f64::INFINITY };
    by_gathering.min(launches_per_s * added.batch)
}

/// The largest exponent that any of the turns asks of the backlog when `taken_s` of its slack is spent otherwise.
fn strictest<'a>(turns: impl Iterator<Item = &'a Turn>, taken_s: f64) -> f64 {
    turns.map(|turn| turn.log_certainty / (turn.slack_s() - taken_s)).fold(0.0, f64::max)
}

/// `exp(theta * work) - 1`: what one piece of work adds in Kingman's bound. It stays finite, so that sums and quotients do.
pub(crate) fn growth(theta: f64, work_s: f64) -> f64 {
    (theta * work_s).min(LARGEST_EXPONENT).exp() - 1.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn turn(rate_per_s: f64, batch: f64, latency_ms: f64, slo_ms: f64) -> Turn {
        let (latency_s, slo_s) = (latency_ms * 1e-3, slo_ms * 1e-3);
        Turn { rate_per_s, batch, latency_s, slo_s, log_certainty: log_certainty(0.99) }
    }

    /// The share of requests of one model alone that wait too long, by playing a lane that starts what is there.
    fn late_share(rate_per_s: f64, batch: usize, latency_s: f64, slack_s: f64) -> f64 {
        let mut dice = crate::plan::dice::Dice::new(7);
        let (mut arrivals, mut now) = (Vec::new(), 0.0);
        for _ in 0..200_000 {
            now -= (1.0 - dice.share()).ln() / rate_per_s;
            arrivals.push(now);
        }
        let (mut first, mut free_at, mut late) = (0, 0.0f64, 0usize);
        while first < arrivals.len() {
            let start = free_at.max(arrivals[first]);
            let ready = arrivals[first..].iter().take(batch).take_while(|&&at| at <= start).count();
            let waited_too_long = |at: &&f64| start - **at > slack_s;
            late += arrivals[first..first + ready].iter().filter(waited_too_long).count();
            (first, free_at) = (first + ready, start + latency_s);
        }
        late as f64 / arrivals.len() as f64
    }

    #[test]
    fn the_most_rate_holds_in_a_played_lane_and_is_not_far_from_the_real_limit() {
        for (batch, latency_ms, slo_ms) in [
            (1.0, 1.0, 2.5),
            (1.0, 1.0, 5.0),
            (4.0, 1.7, 5.25),
            (8.0, 2.2, 5.25),
            (8.0, 2.2, 4.5),
            (16.0, 3.0, 7.0),
            (32.0, 6.0, 13.0),
        ] {
            let alone = turn(0.0, batch, latency_ms, slo_ms);
            let most = most_rate(&[], &alone);
            let late =
                |rate: f64| late_share(rate, batch as usize, alone.latency_s, alone.slack_s());
            assert!(late(most) <= 0.01, "{batch} {slo_ms}: {}", late(most));
            assert!(late(most * 1.6) > 0.01, "{batch} {slo_ms}: {}", late(most * 1.6));
        }
    }

    #[test]
    fn many_rarely_used_models_share_though_a_full_round_would_not_fit() {
        let rare = vec![turn(20.0, 1.0, 1.0, 4.25); 8];
        assert!(feasible(&rare));
        let busy = vec![turn(100.0, 1.0, 1.0, 4.25); 8];
        assert!(!feasible(&busy));
    }

    #[test]
    fn what_takes_longer_than_its_objective_gets_nothing() {
        assert_eq!(most_rate(&[], &turn(0.0, 1.0, 5.0, 5.0)), 0.0);
        assert_eq!(most_rate(&[turn(10.0, 1.0, 1.0, 4.0)], &turn(0.0, 1.0, 5.0, 4.0)), 0.0);
        assert_eq!(most_rate(&[turn(2000.0, 1.0, 1.0, 40.0)], &turn(0.0, 1.0, 1.0, 40.0)), 0.0);
    }

    #[test]
    fn a_promise_for_every_request_is_planned_as_a_very_strict_one() {
        let mut strict = turn(0.0, 8.0, 1.0, 4.0);
        strict.log_certainty = log_certainty(1.0);
        let most = most_rate(&[], &strict);
        assert!(most > 0.0 && most < most_rate(&[], &turn(0.0, 8.0, 1.0, 4.0)));
    }

    proptest! {
        #[test]
        fn lower_rates_never_break_the_rule_and_the_order_of_turns_does_not_matter(
            parts in prop::collection::vec((1.0f64..2e3, 0usize..4, 0.2f64..3.0, 2.0f64..30.0), 1..6),
            scales in prop::collection::vec(0.0f64..1.0, 6),
        ) {
            let turns: Vec<Turn> = parts
                .iter()
                .map(|&(rate, power, latency, slo)| turn(rate, f64::from(1 << power), latency, slo))
                .collect();
            let mut reversed = turns.clone();
            reversed.reverse();
            let scaled: Vec<Turn> = turns
                .iter()
                .zip(&scales)
                .map(|(turn, scale)| Turn { rate_per_s: turn.rate_per_s * scale, ..*turn })
                .collect();
            if feasible(&turns) {
                prop_assert!(feasible(&scaled));
                prop_assert!(feasible(&reversed));
            }
        }

        #[test]
        fn the_most_rate_is_where_the_rule_begins_to_break(
            parts in prop::collection::vec((1.0f64..3e2, 0usize..4, 0.2f64..3.0, 5.0f64..60.0), 1..5),
        ) {
            let mut turns: Vec<Turn> = parts
                .iter()
                .map(|&(rate, power, latency, slo)| turn(rate, f64::from(1 << power), latency, slo))
                .collect();
            let last = turns.len() - 1;
            let most = most_rate(&turns[..last], &turns[last]);
            turns[last].rate_per_s = most;
            prop_assert!(most == 0.0 || feasible(&turns));
            turns[last].rate_per_s = most + 1e-3;
            prop_assert!(!feasible(&turns));
        }
    }
}
