//! What was counted of late: the counts of the last seconds, so that rates and percentiles can be told without a database.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::metrics::{Metrics, ModelCounts};

/// How far back is looked.
pub(super) const WINDOW: Duration = Duration::from_secs(10);

/// Looks that are kept, at most; they come once a second.
const MAX_LOOKS: usize = 16;

/// The counts at some moments.
#[derive(Default)]
pub(super) struct Recent {
    looks: VecDeque<Look>,
}

struct Look {
    at: Instant,
    /// A model of which nothing was counted since the look before shares its counts.
    models: HashMap<String, Arc<ModelCounts>>,
}

/// What was counted of a model over some time.
pub(super) struct Lately {
    pub(super) counts: ModelCounts,
    pub(super) seconds: f64,
}

impl Recent {
    /// Remembers the counts of a moment, and forgets those before the window.
    pub(super) fn look(&mut self, metrics: &Metrics, now: Instant) {
        let before = self.looks.back();
        let models = metrics.all().into_iter().map(|(name, model)| {
            let counts = model.counts();
            let same = before.and_then(|look| look.models.get(&name));
            let same = same.filter(|same| ***same == counts).cloned();
            (name, same.unwrap_or_else(|| Arc::new(counts)))
        });
        let models = models.collect();
        self.looks.push_back(Look { at: now, models });
        // The one that is as old as the window, or older, is what the next are compared with.
        while self.looks.get(1).is_some_and(|second| now.duration_since(second.at) >= WINDOW)
            || self.looks.len() > MAX_LOOKS
        {
            self.looks.pop_front();
        }
    }

    /// What was counted of a model from the beginning of the window to now.
    pub(super) fn of(&self, name: &str, counts: &ModelCounts, now: Instant) -> Lately {
        let Some(first) = self.looks.front() else {
            return Lately { counts: counts.since(counts), seconds: 0.0 };
        };
        let seconds = now.duration_since(first.at).as_secs_f64();
        match first.models.get(name) {
            Some(then) => Lately { counts: counts.since(then), seconds },
            // It has come since, and with it all that was counted.
            None => Lately { counts: counts.clone(), seconds },
        }
    }
}

impl Lately {
    /// How often something happened each second.
    pub(super) fn per_s(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }

    /// Units that what was asked for would keep busy: entries per second, times the unit-seconds that one is expected to
    /// take, which is taken from what ran of late, or else from all that ever ran.
    pub(super) fn units_asked(&self, ever: &ModelCounts) -> f64 {
        let of = [&self.counts, ever].into_iter().find(|counts| counts.batch_rows.sum > 0);
        let expected_s = of.map_or(0.0, |counts| {
            counts.expected_unit_ns as f64 / 1e9 / counts.batch_rows.sum as f64
        });
        self.per_s(self.counts.rows) * expected_s
    }
}

#[cfg(test)]
mod tests {
    use weft_engine::{LaunchRecord, ModelKey};
    use weft_scheduler::UnitMask;

    use super::*;
    use crate::metrics::Outcome;

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let metrics = Metrics::default();
        metrics.admit(["a"]);
        let (mut recent, start) = (Recent::default(), Instant::now());
        for second in 0..60 {
            let now = start + Duration::from_secs(second);
            recent.look(&metrics, now);
            metrics.of("a").ended(Outcome::Ok, Duration::from_millis(second + 1));
        }
        let now = start + Duration::from_secs(60);
        let lately = recent.of("a", &metrics.of("a").counts(), now);
        assert_eq!((lately.counts.request_count(), lately.seconds), (11, 11.0));
        assert!((lately.per_s(11) - 1.0).abs() < 1e-9);
        let median_ms = lately.counts.of(Outcome::Ok).quantile(0.5).unwrap() / 1e6;
        assert!((50.0..70.0).contains(&median_ms), "{median_ms}");
    }

    #[test]
    fn units_are_asked_for_by_rate_and_expected_time() {
        let metrics = Metrics::default();
        metrics.admit(["a"]);
        let (mut recent, start) = (Recent::default(), Instant::now());
        recent.look(&metrics, start);
        let model = metrics.of("a");
        // 40 entries in 10 s, each expected to take 2 units for 50 ms in a batch of four that takes 200 ms.
        model.asked(40);
        model.executed(
            4,
            &LaunchRecord {
                model: ModelKey::unused(),
                partition: 0,
                is_background: false,
                units: UnitMask::range(0, 2),
                rows: 4,
                tenants: 1,
                is_fused: false,
                is_mixed: false,
                started: start,
                took: Duration::from_millis(170),
                paused: Duration::ZERO,
                expected: Duration::from_millis(200),
            },
        );
        let counts = model.counts();
        let lately = recent.of("a", &counts, start + WINDOW);
        assert!((lately.units_asked(&counts) - 0.4).abs() < 1e-9);
    }
}
