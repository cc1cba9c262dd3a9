//! Whether a trial was disturbed more than trials beside others usually are.

use std::collections::VecDeque;

/// How many trials before it one is compared with.
const REMEMBERED: usize = 64;

/// How many of them are enough to tell what is usual.
const LEAST: usize = 8;

/// How much slower than usual the control kernel may be before a time does not count.
const MAX_EXCESS: f64 = 1.2;

/// What the control kernel took in the trials before, relative to what it takes alone.
#[derive(Debug, Default)]
pub(super) struct Interference {
    recent: VecDeque<f64>,
}

impl Interference {
    /// Notes a trial's interference; says whether it is more than usual.
    pub(super) fn is_unusual(&mut self, interference: f64) -> bool {
        let usual = self.usual();
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(interference);
        usual.is_some_and(|usual| interference > usual * MAX_EXCESS)
    }

    /// The median; `None` where too little is known.
    pub(super) fn usual(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.recent.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        (sorted.len() >= LEAST).then(|| sorted[sorted.len() / 2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_is_learned_and_what_is_not_stands_out() {
        let mut interference = Interference::default();
        assert!(!interference.is_unusual(9.0), "nothing is known yet");
        assert!((0..20).all(|step| !interference.is_unusual(1.30 + 0.002 * f64::from(step))));
        assert!(interference.is_unusual(1.6));
        assert!(!interference.is_unusual(1.0));
        // A device that is shared by more from now on is usual soon.
        let until_usual = (0..100).take_while(|_| interference.is_unusual(1.6)).count();
        assert!((1..REMEMBERED).contains(&until_usual), "{until_usual}");
    }
}
