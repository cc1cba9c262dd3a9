//! How cautious promises must be, learned from those that were kept and broken.

/// The share of accepted requests that may be late: half of what a promise for 99 of 100 allows.
const BROKEN_SHARE: f64 = 0.005;
/// How many standard deviations a broken promise adds.
const STEP: f64 = 0.4;
/// What is kept in reserve before anything is known.
const AT_FIRST: f64 = 0.7;
/// More is never needed: what strays farther is not noise.
const MOST: f64 = 3.0;
/// After how many requests refused in a row, with nothing before them, a step is taken back.
const PATIENCE: u32 = 100;

/// The standard deviations that are kept in reserve. Every broken promise adds to them and every kept one takes something
/// off, in the proportion that holds them still when as many are broken as may be: where hardly any request comes close
/// to its deadline, those that do are not refused for nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Certainty {
    deviations: f64,
    refused_alone: u32,
}

impl Default for Certainty {
    fn default() -> Self {
        Self { deviations: AT_FIRST, refused_alone: 0 }
    }
}

impl Certainty {
    pub(super) fn deviations(self) -> f64 {
        self.deviations
    }

    /// Takes in how many promises were kept and broken.
    pub(super) fn observe(&mut self, kept: usize, broken: usize) {
        if kept + broken == 0 {
            return;
        }
        let less = STEP * BROKEN_SHARE / (1.0 - BROKEN_SHARE) * kept as f64;
        let deviations = self.deviations + STEP * broken as f64 - less;
        *self = Self { deviations: deviations.clamp(0.0, MOST), refused_alone: 0 };
    }

    /// A request was refused though nothing was before it: where no request is accepted, nothing else is learned, and
    /// the model would be shut out for ever. Says whether something is taken back.
    pub(super) fn observe_refused_alone(&mut self) -> bool {
        self.refused_alone += 1;
        let is_enough = self.refused_alone == PATIENCE;
        if is_enough {
            let deviations = (self.deviations - STEP).max(0.0);
            *self = Self { deviations, refused_alone: 0 };
        }
        is_enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_settles_where_as_many_are_broken_as_may_be() {
        // Promises break ever less often the more is kept in reserve: a tenth of them at none, a quarter of that with each.
        let mut certainty = Certainty::default();
        let (mut kept, mut broken, mut debt) = (0.0, 0.0, 0.0);
        for round in 0..200_000 {
            debt += 0.1 * 0.25f64.powf(certainty.deviations());
            let breaks = debt >= 1.0;
            debt -= f64::from(u8::from(breaks));
            certainty.observe(usize::from(!breaks), usize::from(breaks));
            if round > 50_000 {
                kept += f64::from(u8::from(!breaks));
                broken += f64::from(u8::from(breaks));
            }
        }
        let share = broken / (kept + broken);
        assert!((share / BROKEN_SHARE - 1.0).abs() < 0.1, "{share}");
    }

    #[test]
    fn it_stays_within_bounds() {
        let mut certainty = Certainty::default();
        certainty.observe(10_000_000, 0);
        assert_eq!(certainty.deviations(), 0.0);
        certainty.observe(0, 10_000);
        assert_eq!(certainty.deviations(), MOST);
        let taken_back = (0..100_000).filter(|_| certainty.observe_refused_alone()).count();
        assert_eq!(taken_back, 100_000 / PATIENCE as usize);
        assert_eq!(certainty.deviations(), 0.0, "nothing is shut out for ever");
    }
}
