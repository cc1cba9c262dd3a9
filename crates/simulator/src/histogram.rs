//! Latencies counted instead of kept: buckets whose width grows with the value, so that any number of them fits.

use std::collections::VecDeque;

use weft_scheduler::Span;

/// Buckets for each doubling of the value, as a power of two: a bucket is 1/64 of its value wide, and its middle is off by
/// at most 0.8 %.
const SUB_BUCKET_BITS: u32 = 6;

/// How many latencies there were, by their size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The number of the first bucket that is kept; those before it are empty.
    first: usize,
    counts: VecDeque<u64>,
    count: u64,
    sum_nanos: u128,
    largest: Span,
}

impl Histogram {
    /// Counts a latency.
    pub fn add(&mut self, latency: Span) {
        let bucket = bucket_of(latency.nanos());
        self.reach(bucket, bucket);
        self.counts[bucket - self.first] += 1;
        self.count += 1;
        self.sum_nanos += u128::from(latency.nanos());
        self.largest = self.largest.max(latency);
    }

    /// Counts all that another has counted.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        self.reach(other.first, other.first + other.counts.len() - 1);
        let offset = other.first - self.first;
        for (place, count) in other.counts.iter().enumerate() {
            self.counts[offset + place] += count;
        }
        self.count += other.count;
        self.sum_nanos += other.sum_nanos;
        self.largest = self.largest.max(other.largest);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean, exact to the nanosecond; zero where there are none.
    pub fn mean(&self) -> Span {
        Span::from_nanos((self.sum_nanos / u128::from(self.count.max(1))) as u64)
    }

    /// The latency that a share of them, from 0 to 1, does not exceed, to within 0.8 %; zero where there are none.
    pub fn quantile(&self, share: f64) -> Span {
        let wanted = (self.count as f64 * share).ceil().max(1.0) as u64;
        if wanted >= self.count {
            return self.largest;
        }
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Span::from_nanos(middle_of(self.first + place)).min(self.largest);
            }
        }
        self.largest
    }

    /// Keeps the buckets from one to another, besides those that are kept.
    fn reach(&mut self, low: usize, high: usize) {
        if self.counts.is_empty() {
            self.first = low;
        }
        while low < self.first {
            self.counts.push_front(0);
            self.first -= 1;
        }
        if self.first + self.counts.len() <= high {
            self.counts.resize(high - self.first + 1, 0);
        }
    }
}

/// Small values have a bucket each; beyond, the leading bits of a value name its bucket.
fn bucket_of(value: u64) -> usize {
    let doublings = (u64::BITS - (value >> SUB_BUCKET_BITS).leading_zeros()).saturating_sub(1);
    ((doublings as usize) << SUB_BUCKET_BITS) + (value >> doublings) as usize
}

fn middle_of(bucket: usize) -> u64 {
    let doublings = (bucket >> SUB_BUCKET_BITS).saturating_sub(1);
    let leading = (bucket - (doublings << SUB_BUCKET_BITS)) as u64;
    (leading << doublings) + (1 << doublings) / 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(nanos: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        nanos.iter().for_each(|&nanos| histogram.add(Span::from_nanos(nanos)));
        histogram
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        for bucket in 0..3000 {
            let middle = middle_of(bucket);
            assert_eq!(bucket_of(middle), bucket);
            assert!(middle_of(bucket + 1) > middle);
        }
        assert_eq!([0, 1, 127, 128, 129, 130].map(bucket_of), [0, 1, 127, 128, 128, 129]);
        assert_eq!(bucket_of(middle_of(bucket_of(u64::MAX))), bucket_of(u64::MAX));
    }

    #[test]
    fn nothing_counted_is_nothing() {
        let none = Histogram::default();
        assert_eq!((none.count(), none.mean(), none.quantile(0.5)), (0, Span::ZERO, Span::ZERO));
        let mut some = of(&[5]);
        some.merge(&none);
        assert_eq!(some, of(&[5]));
    }

    #[test]
    fn memory_goes_with_the_range_and_not_with_the_number() {
        let nanos: Vec<u64> = (0..200_000).map(|index| 1_000_000 + index * 10).collect();
        assert!(of(&nanos).counts.len() < 2 << SUB_BUCKET_BITS);
    }

    proptest! {
        #[test]
        fn quantiles_are_near_those_of_the_sorted_values(
            mut nanos in prop::collection::vec(0u64..10_000_000_000, 1..300), share in 0.0f64..=1.0,
        ) {
            let histogram = of(&nanos);
            nanos.sort_unstable();
            let place = (nanos.len() as f64 * share).ceil().max(1.0) as usize - 1;
            let (exact, found) = (nanos[place] as f64, histogram.quantile(share).nanos() as f64);
            prop_assert!((found - exact).abs() <= exact * 0.008 + 0.5, "{found} {exact}");
            prop_assert_eq!(Some(&histogram.quantile(1.0).nanos()), nanos.last());
            let sum: u64 = nanos.iter().sum();
            prop_assert_eq!(histogram.mean().nanos(), sum / nanos.len() as u64);
        }

        #[test]
        fn parts_count_as_the_whole(
            nanos in prop::collection::vec(0u64..1_000_000_000_000, 0..100), cut in 0usize..100,
        ) {
            let (left, right) = nanos.split_at(cut.min(nanos.len()));
            let mut merged = of(right);
            merged.merge(&of(left));
            prop_assert_eq!(merged, of(&nanos));
        }
    }
}
