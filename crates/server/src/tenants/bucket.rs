//! A rate that is kept on average, with bursts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What lies this far ahead never comes: a hundred years and more, in nanoseconds, with room to add to it.
const NEVER_NS: u64 = 1 << 61;

/// Lets through no more than a burst, and a rate beyond it: never more than `burst + rate * t` within a time `t`.
///
/// One number is kept: until when what was let through has used up the rate. It may lie ahead of now by what a burst takes.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Between two at the rate.
    interval_ns: u64,
    /// How far the number may lie ahead, and one more still be let through.
    ahead_ns: u64,
    used_until_ns: AtomicU64,
}

impl Bucket {
    /// A full one. Rates are rounded down to whole nanoseconds between two; a burst is at least one.
    pub(super) fn new(rate_per_s: f64, burst: u32) -> Self {
        let interval_ns = ((1e9 / rate_per_s).ceil() as u64).clamp(1, NEVER_NS);
        let following = u64::from(burst.max(1) - 1).min(NEVER_NS / interval_ns);
        Self { interval_ns, ahead_ns: following * interval_ns, used_until_ns: AtomicU64::new(0) }
    }

    /// Lets one through at a time since some beginning, or says how long to wait before it is worth another try.
    pub(super) fn take(&self, now: Duration) -> Result<(), Duration> {
        let now_ns = u64::try_from(now.as_nanos()).unwrap_or(NEVER_NS).min(NEVER_NS);
        let latest_ns = now_ns + self.ahead_ns;
        let used = |used_until_ns: u64| {
            let is_room = used_until_ns <= latest_ns;
            is_room.then(|| used_until_ns.max(now_ns) + self.interval_ns)
        };
        let order = Ordering::Relaxed;
        match self.used_until_ns.fetch_update(order, order, used) {
            Ok(_) => Ok(()),
            Err(used_until_ns) => Err(Duration::from_nanos(used_until_ns - latest_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let bucket = Bucket::new(10.0, 3);
        assert_eq!([(); 3].map(|()| bucket.take(SECOND)), [Ok(()); 3]);
        let tenth = Duration::from_millis(100);
        assert_eq!(bucket.take(SECOND), Err(tenth));
        assert_eq!(bucket.take(SECOND + tenth / 2), Err(tenth / 2));
        assert_eq!(bucket.take(SECOND + tenth), Ok(()));
        assert!(bucket.take(SECOND + tenth).is_err());
        assert_eq!([(); 3].map(|()| bucket.take(SECOND * 9)), [Ok(()); 3], "it fills up again");
        assert!(bucket.take(SECOND * 9).is_err(), "and no further");
    }

    #[test]
    fn the_strangest_rates_are_kept() {
        for (rate, burst) in [(1e-300, u32::MAX), (1e-9, 1), (f64::MAX, 1), (1e300, u32::MAX)] {
            let bucket = Bucket::new(rate, burst);
            assert_eq!(bucket.take(Duration::MAX), Ok(()), "{rate}");
            let _ = bucket.take(Duration::MAX);
        }
        let never = Bucket::new(1e-300, u32::MAX);
        assert_eq!((never.take(SECOND), never.take(SECOND)), (Ok(()), Ok(())));
        assert!(never.take(SECOND).is_err(), "what would overflow is refused");
    }

    proptest! {
        #[test]
        fn never_more_than_the_burst_and_the_rate(
            rate in 0.01f64..10_000.0,
            burst in 1u32..50,
            steps in prop::collection::vec(0u64..500_000_000, 1..400),
        ) {
            let bucket = Bucket::new(rate, burst);
            let mut now = SECOND;
            let mut passed: Vec<Duration> = Vec::new();
            for step in steps {
                now += Duration::from_nanos(step);
                match bucket.take(now) {
                    Ok(()) => passed.push(now),
                    Err(wait) => {
                        // Whoever comes when told to, and first, is let through; just before, not.
                        prop_assert!(wait > Duration::ZERO);
                        prop_assert!(bucket.take(now + wait - Duration::from_nanos(1)).is_err());
                    }
                }
            }
            for (first, from) in passed.iter().enumerate() {
                for (count, to) in (1..).zip(&passed[first..]) {
                    let most = f64::from(burst) + rate * (*to - *from).as_secs_f64();
                    prop_assert!(f64::from(count) <= most + 1e-6, "{count} > {most}");
                }
            }
        }

        #[test]
        fn a_steady_sender_at_the_rate_is_never_refused(rate in 1u32..1_000_000) {
            let bucket = Bucket::new(f64::from(rate), 1);
            let step = Duration::from_nanos(1_000_000_000_u64.div_ceil(u64::from(rate)));
            for number in 0..200 {
                prop_assert_eq!(bucket.take(SECOND + step * number), Ok(()));
            }
        }
    }
}
