//! How much trials are disturbed, and whether one was more than trials beside others usually are.

use std::collections::VecDeque;

/// How many trials before it one is compared with.
const REMEMBERED: usize = 64;

/// How many of them are enough to tell what is usual.
const LEAST: usize = 8;

/// How much slower than usual the control kernel may be before a time does not count.
const MAX_EXCESS: f64 = 1.2;

/// The share of trials at least that is thought to be usual: what neighbours do to each other all the time is.
const USUAL_SHARE: f64 = 0.9;

/// How many times as much as those of the control kernel, which is small, the times of candidates differ.
const NOISE_OVER_CONTROL: f64 = 2.0;

/// What the control kernel took in the trials before, relative to what it takes alone.
#[derive(Debug, Default)]
pub(super) struct Interference {
    recent: VecDeque<f64>,
    /// How many trials there were, and sums over all of them: of the logarithms, and of their squares.
    trials: f64,
    sum: f64,
    squares: f64,
}

impl Interference {
    /// Notes a trial's interference; says how many times as much as usual it is, where that is too much.
    pub(super) fn excess(&mut self, interference: f64) -> Option<f64> {
        let mut sorted: Vec<f64> = self.recent.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(interference);
        let logarithm = interference.max(f64::MIN_POSITIVE).ln();
        self.trials += 1.0;
        self.sum += logarithm;
        self.squares += logarithm * logarithm;
        if sorted.len() < LEAST {
            return None;
        }
        let below = |share: f64| sorted[(sorted.len() as f64 * share) as usize];
        let excess = interference / below(0.5);
        (excess > MAX_EXCESS && interference > below(USUAL_SHARE)).then_some(excess)
    }

    /// How much measurements of one candidate differ, as a logarithm, by how much the control kernel did in all trials so
    /// far: what disturbs them all alike leaves their order as it is.
    pub(super) fn noise(&self) -> f64 {
        if self.trials < LEAST as f64 {
            return 0.0;
        }
        let mean = self.sum / self.trials;
        NOISE_OVER_CONTROL * (self.squares / self.trials - mean * mean).max(0.0).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_is_learned_and_what_is_not_stands_out() {
        let mut interference = Interference::default();
        assert_eq!(interference.excess(9.0), None, "nothing is known yet");
        assert!((0..20).all(|step| interference.excess(1.30 + 0.002 * f64::from(step)).is_none()));
        assert!(interference.excess(2.64).is_some_and(|excess| (1.9..2.1).contains(&excess)));
        assert_eq!(interference.excess(1.0), None);
        // A device that is shared by more from now on is usual soon.
        let until_usual = (0..100).take_while(|_| interference.excess(1.6).is_some()).count();
        assert!((1..REMEMBERED).contains(&until_usual), "{until_usual}");
    }

    #[test]
    fn noise_is_what_differs_between_trials_not_what_all_have() {
        let noise = |of: &dyn Fn(u32) -> f64, trials| {
            let mut interference = Interference::default();
            for trial in 0..trials {
                interference.excess(of(trial));
            }
            interference.noise()
        };
        assert!(noise(&|_| 1.7, 100) < 1e-6, "all are disturbed alike");
        let calm_or_not = |trial: u32| if trial.is_multiple_of(2) { 1.0 } else { 1.21 };
        assert!((noise(&calm_or_not, 100) - NOISE_OVER_CONTROL * 1.1f64.ln()).abs() < 1e-9);
        assert_eq!(noise(&calm_or_not, LEAST as u32 - 1), 0.0, "too few to tell");
        // An operator's last trials may be long ago, so that it is not enough to know how it is now.
        assert!(noise(&|trial| if trial < 100 { 1.5 } else { 1.0 }, 200) > 0.3);
    }
}
