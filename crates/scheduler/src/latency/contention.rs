//! What executions cost each other that run at the same time on disjoint units: memory bandwidth.
//!
//! As in a roofline, the time `L` of an execution alone is split by the `D` bytes that it moves through a memory of
//! bandwidth `B`: `M = D / B` for memory, at most all of `L`, and `C = L - M` for everything else. Its memory share is
//! `m = M / L`, which is also the part of the bandwidth that it asks for. While others run, `C` stays, since units are
//! its own, and `M` is stretched by a factor `s` that is the same for all, since memory takes turns:
//!
//! ```text
//! L' = C + s M = L (1 + m (s - 1))
//! ```
//!
//! `s` is 1 where all together ask for no more than there is (`sum of m <= 1`). Where they ask for more, it is the least
//! at which what they then move fits, as nothing moves more bytes than the memory has bandwidth for:
//!
//! ```text
//! sum over i of  (D_i / L'_i) = B      that is      sum over i of  m_i / (1 + m_i (s - 1)) = 1
//! ```

use std::iter;

use crate::profile::Profile;
use crate::time::Span;

/// Newton's steps approach the stretch from below and double their digits; more are never needed.
const MAX_STEPS: usize = 40;
/// How far past the bandwidth the solution may be.
const TOLERANCE: f64 = 1e-12;

/// The share of an execution's time alone for which it keeps the device's memory busy: between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct MemoryShare(f64);

impl MemoryShare {
    /// The share of an execution that moves so many bytes in its time alone.
    pub fn of(dram_bytes: f64, latency: Span, bandwidth_bytes_per_s: f64) -> Self {
        let share = dram_bytes / bandwidth_bytes_per_s / latency.seconds();
        // No bytes in no time are no load.
        Self(if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) })
    }

    /// The share of a batch of a model on a number of units.
    pub fn of_batch(profile: &Profile, batch: u32, units: u32, bandwidth_bytes_per_s: f64) -> Self {
        let bytes = profile.dram_bytes(batch, units);
        Self::of(bytes, profile.latency(batch, units), bandwidth_bytes_per_s)
    }

    /// As a number.
    pub fn value(self) -> f64 {
        self.0
    }

    /// How many times longer the execution takes while others run beside it; at least 1.
    pub fn slowdown(self, co_runners: &[MemoryShare]) -> f64 {
        let all = iter::once(self).chain(co_runners.iter().copied());
        self.stretched(memory_stretch(all))
    }

    /// The same where it is known how many times longer memory takes.
    pub fn stretched(self, stretch: f64) -> f64 {
        1.0 + self.0 * (stretch - 1.0)
    }
}

/// How many times longer memory takes when these run together; at least 1. The module's text has the formula.
pub fn memory_stretch(shares: impl Iterator<Item = MemoryShare> + Clone) -> f64 {
    // Without contention, which is most of the time, there is nothing to solve.
    if shares.clone().map(MemoryShare::value).sum::<f64>() <= 1.0 {
        return 1.0;
    }
    let mut stretch = 1.0;
    for _ in 0..MAX_STEPS {
        let (mut moved, mut slope) = (0.0, 0.0);
        for MemoryShare(share) in shares.clone() {
            let achieved = share / (1.0 + share * (stretch - 1.0));
            moved += achieved;
            slope += achieved * achieved;
        }
        let excess = moved - 1.0;
        if excess <= TOLERANCE {
            break;
        }
        stretch += excess / slope;
    }
    stretch
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shares(values: &[f64]) -> Vec<MemoryShare> {
        values.iter().map(|&value| MemoryShare(value)).collect()
    }

    #[test]
    fn copies_halve_each_other_and_compute_is_left_alone() {
        let copy = MemoryShare(1.0);
        assert!((copy.slowdown(&shares(&[1.0])) - 2.0).abs() < 1e-9);
        assert!((copy.slowdown(&shares(&[1.0; 15])) - 16.0).abs() < 1e-9);
        assert_eq!(MemoryShare(0.0).slowdown(&shares(&[1.0, 1.0])), 1.0);
        assert_eq!(copy.slowdown(&shares(&[0.0; 3])), 1.0);
    }

    #[test]
    fn nothing_slows_down_until_the_bandwidth_is_asked_for() {
        assert_eq!(MemoryShare(0.4).slowdown(&shares(&[0.3, 0.3])), 1.0);
        assert!(MemoryShare(0.4).slowdown(&shares(&[0.3, 0.4])) > 1.0);
    }

    #[test]
    fn four_that_ask_for_half_each_take_twice_as_long() {
        assert!((MemoryShare(0.5).slowdown(&shares(&[0.5; 3])) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn shares_come_from_bytes_and_time() {
        let share = |bytes, us| MemoryShare::of(bytes, Span::from_us(us), 1e9).value();
        assert!((share(1e3, 4.0) - 0.25).abs() < 1e-12);
        assert_eq!(share(1e6, 1.0), 1.0);
        assert_eq!(share(0.0, 0.0), 0.0);
    }

    proptest! {
        #[test]
        fn what_is_moved_fits_the_bandwidth_and_uses_all_of_it(
            values in prop::collection::vec(0.0f64..=1.0, 1..20),
        ) {
            let all = shares(&values);
            let stretch = memory_stretch(all.iter().copied());
            let moved: f64 = values.iter().map(|m| m / (1.0 + m * (stretch - 1.0))).sum();
            prop_assert!(moved <= 1.0 + 1e-9);
            prop_assert!(stretch == 1.0 || moved > 1.0 - 1e-9);
        }

        #[test]
        fn a_co_runner_that_asks_for_more_never_helps(
            own in 0.0f64..=1.0,
            others in prop::collection::vec(0.0f64..=1.0, 1..10),
            more in 0.0f64..=1.0,
        ) {
            let own = MemoryShare(own);
            let before = own.slowdown(&shares(&others));
            let mut raised = others.clone();
            raised[0] = raised[0].max(more);
            prop_assert!(own.slowdown(&shares(&raised)) >= before - 1e-9);
            raised.push(more);
            prop_assert!(own.slowdown(&shares(&raised)) >= before - 1e-9);
        }
    }
}
