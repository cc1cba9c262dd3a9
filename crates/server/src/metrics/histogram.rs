//! Histograms that many threads add to without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;
const S: u64 = 1_000 * MS;

/// Bounds of durations in nanoseconds, from 0.1 ms to 60 s: six for each tenfold, so that a quantile that is read out of
/// the histogram is off by no more than half.
pub(crate) const DURATION_BOUNDS_NS: &[u64] = &[
    100 * US,
    150 * US,
    200 * US,
    300 * US,
    500 * US,
    700 * US,
    MS,
    1_500 * US,
    2 * MS,
    3 * MS,
    5 * MS,
    7 * MS,
    10 * MS,
    15 * MS,
    20 * MS,
    30 * MS,
    50 * MS,
    70 * MS,
    100 * MS,
    150 * MS,
    200 * MS,
    300 * MS,
    500 * MS,
    700 * MS,
    S,
    1_500 * MS,
    2 * S,
    3 * S,
    5 * S,
    7 * S,
    10 * S,
    15 * S,
    20 * S,
    30 * S,
    60 * S,
];

/// Bounds of the sizes of batches.
pub(crate) const ROWS_BOUNDS: &[u64] = &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256];

/// How often values fell between bounds, and their sum.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: &'static [u64],
    /// One for each bound, of the values up to it and above the one before, and one for those above all.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    /// Bounds increase.
    pub(crate) fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }

    pub(crate) fn add(&self, value: u64) {
        let place = self.bounds.partition_point(|&bound| bound < value);
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    pub(crate) fn add_duration(&self, value: Duration) {
        self.add(nanos(value));
    }

    /// What was added so far.
    pub(crate) fn counts(&self) -> HistogramCounts {
        HistogramCounts {
            bounds: self.bounds,
            counts: self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
            sum: self.sum.load(Ordering::Relaxed),
        }
    }
}

/// A histogram at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HistogramCounts {
    pub(crate) bounds: &'static [u64],
    /// As in [`Histogram`]: each value is counted once.
    pub(crate) counts: Box<[u64]>,
    pub(crate) sum: u64,
}

impl HistogramCounts {
    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// What was added since an earlier moment.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let pairs = self.counts.iter().zip(&earlier.counts);
        Self {
            bounds: self.bounds,
            counts: pairs.map(|(now, then)| now.saturating_sub(*then)).collect(),
            sum: self.sum.saturating_sub(earlier.sum),
        }
    }

    /// The value that a share of all are no larger than, taken to lie evenly between bounds; `None` where there is none.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let total = self.total();
        let rank = (share * total as f64).max(f64::MIN_POSITIVE);
        let mut below = 0;
        for (place, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            if (below + count) as f64 >= rank {
                let lower = place.checked_sub(1).map_or(0, |before| self.bounds[before]) as f64;
                let upper = self.bounds.get(place).map_or(lower, |&bound| bound as f64);
                return Some(lower + (upper - lower) * (rank - below as f64) / count as f64);
            }
            below += count;
        }
        None
    }
}

/// Whole nanoseconds.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_counted_up_to_its_bound() {
        let histogram = Histogram::new(&[10, 20]);
        for value in [0, 10, 11, 20, 21, 1_000] {
            histogram.add(value);
        }
        let counts = histogram.counts();
        assert_eq!((&*counts.counts, counts.sum), (&[2, 2, 2][..], 1_062));
    }

    #[test]
    fn quantiles_lie_between_the_bounds_of_their_values() {
        let histogram = Histogram::new(DURATION_BOUNDS_NS);
        assert_eq!(histogram.counts().quantile(0.5), None);
        for ms in 1..=1_000 {
            histogram.add(ms * MS);
        }
        let counts = histogram.counts();
        for (share, exact) in [(0.0, 1.0), (0.5, 500.0), (0.99, 990.0), (1.0, 1_000.0)] {
            let found = counts.quantile(share).unwrap() / MS as f64;
            assert!((found / exact - 1.0).abs() < 0.35, "{share}: {found}");
        }
        let before = counts;
        histogram.add(100 * S);
        let one = histogram.counts().since(&before);
        assert_eq!((one.total(), one.sum), (1, 100 * S));
        // What lies above all bounds is known to be no less than the last.
        assert_eq!(one.quantile(0.5), Some(60.0 * S as f64));
    }

    #[test]
    fn bounds_increase_by_no_more_than_double() {
        for bounds in [DURATION_BOUNDS_NS, ROWS_BOUNDS] {
            assert!(bounds.windows(2).all(|pair| pair[0] < pair[1] && pair[1] <= 2 * pair[0]));
        }
    }
}
