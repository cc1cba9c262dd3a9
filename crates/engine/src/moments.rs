//! Times of one case, taken at moments that lie apart: what else runs on a machine makes a run longer and never shorter.

use std::time::Duration;

/// A case is timed at so many moments at least, and at no more than these.
pub(crate) const FEWEST_MOMENTS: usize = 2;
const MOST_MOMENTS: usize = 6;

/// Two times agree that differ by no more than this share of the shorter.
const AGREEMENT: f64 = 0.1;

/// What a case took at each moment so far.
#[derive(Default)]
pub(crate) struct Moments(Vec<Duration>);

impl Moments {
    pub(crate) fn push(&mut self, time: Duration) {
        let place = self.0.partition_point(|other| *other < time);
        self.0.insert(place, time);
    }

    /// Whether the shortest time is not known yet: the next shortest is another, and may have been disturbed as well as not.
    pub(crate) fn is_open(&self) -> bool {
        let agrees = |pair: &[Duration]| pair[1] <= pair[0].mul_f64(1.0 + AGREEMENT);
        let is_known =
            self.0.len() >= FEWEST_MOMENTS && self.0.windows(2).next().is_some_and(agrees);
        !is_known && self.0.len() < MOST_MOMENTS
    }

    /// The shortest time.
    pub(crate) fn shortest(&self) -> Option<Duration> {
        self.0.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_timed_until_its_two_shortest_times_agree() {
        for (times_ms, count, shortest_ms) in [
            (&[10, 11][..], 2, 10),
            (&[11, 10], 2, 10),
            (&[20, 10, 20, 11, 10], 4, 10),
            (&[30, 20, 20, 10, 10], 3, 20),
            (&[60, 50, 40, 30, 20, 10, 10], 6, 10),
        ] {
            let mut moments = Moments::default();
            let mut taken = 0;
            for &ms in times_ms {
                if moments.is_open() {
                    moments.push(Duration::from_millis(ms));
                    taken += 1;
                }
            }
            assert_eq!(taken, count, "{times_ms:?}");
            assert!(!moments.is_open());
            assert_eq!(
                moments.shortest(),
                Some(Duration::from_millis(shortest_ms)),
                "{times_ms:?}"
            );
        }
    }
}
