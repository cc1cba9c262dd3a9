//! How often each model is asked for, as far as arrivals tell.

use crate::time::{Span, Time};

/// The window of the quick average, which notices changes.
const QUICK: Span = Span::from_nanos(20_000_000);

/// The window of the steady average, which is exact while nothing changes.
const STEADY: Span = Span::from_nanos(2_000_000_000);

/// By how many standard deviations the quick average must differ from the steady one to be a change and not chance. Bursts
/// make for larger deviations than independent arrivals do, so this is far out.
const CHANGE: f64 = 6.0;

/// The rate of one model's arrivals.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivalRate {
    quick: Average,
    steady: Average,
}

impl ArrivalRate {
    /// What is expected before any request has come.
    pub(super) fn expected(rate_per_s: f64, now: Time) -> Self {
        let average = |window| Average { window, per_s: rate_per_s, at: now };
        Self { quick: average(QUICK), steady: average(STEADY) }
    }

    /// A request came.
    pub(super) fn arrive(&mut self, now: Time) {
        self.quick.arrive(now);
        self.steady.arrive(now);
    }

    /// The rate by now. A change is noticed, and what was before it forgotten.
    pub(super) fn per_s(&mut self, now: Time) -> f64 {
        let (quick, steady) = (self.quick.read(now), self.steady.read(now));
        if self.has_changed(quick, steady) {
            self.steady.per_s = quick;
            return quick;
        }
        steady
    }

    /// Whether chance alone does not explain the difference: the root of a count has a standard deviation of one half,
    /// whatever its mean. An exponential average counts over twice its window.
    fn has_changed(&self, quick_per_s: f64, steady_per_s: f64) -> bool {
        let counted_s = 2.0 * QUICK.seconds();
        let root = |per_s: f64| (per_s * counted_s + 0.375).sqrt();
        2.0 * (root(quick_per_s) - root(steady_per_s)).abs() > CHANGE
    }
}

/// An average in which what is older than the window hardly counts.
#[derive(Clone, Copy, Debug)]
struct Average {
    window: Span,
    per_s: f64,
    at: Time,
}

impl Average {
    fn read(&mut self, now: Time) -> f64 {
        let passed = now.since(self.at);
        if passed > Span::ZERO {
            self.per_s *= (-passed.seconds() / self.window.seconds()).exp();
            self.at = now;
        }
        self.per_s
    }

    fn arrive(&mut self, now: Time) {
        self.per_s = self.read(now) + 1.0 / self.window.seconds();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Dice;

    /// Independent arrivals at a rate for some seconds.
    fn play(rate: &mut ArrivalRate, from_s: f64, per_s: f64, seconds: f64, dice: &mut Dice) {
        let mut at_s = from_s;
        loop {
            at_s -= (1.0 - dice.share()).ln() / per_s;
            if at_s > from_s + seconds {
                return;
            }
            rate.arrive(Time::START + Span::from_s(at_s));
        }
    }

    #[test]
    fn a_steady_rate_is_known_to_a_few_percent() {
        for per_s in [20.0, 300.0, 5000.0] {
            let mut dice = Dice::new(3);
            let mut rate = ArrivalRate::expected(per_s, Time::START);
            for second in 0..20 {
                play(&mut rate, f64::from(second), per_s, 1.0, &mut dice);
                let now = Time::START + Span::from_s(f64::from(second) + 1.0);
                let known = rate.per_s(now);
                let deviation = (per_s / (2.0 * STEADY.seconds())).sqrt();
                assert!((known - per_s).abs() < 4.5 * deviation, "{per_s}: {known}");
            }
        }
    }

    #[test]
    fn a_change_is_known_within_a_few_windows() {
        let mut dice = Dice::new(5);
        let mut rate = ArrivalRate::expected(50.0, Time::START);
        play(&mut rate, 0.0, 50.0, 5.0, &mut dice);
        play(&mut rate, 5.0, 5000.0, 0.06, &mut dice);
        let after = rate.per_s(Time::START + Span::from_s(5.06));
        assert!((4000.0..6000.0).contains(&after), "{after}");
        play(&mut rate, 5.06, 5000.0, 3.0, &mut dice);
        let stopped = rate.per_s(Time::START + Span::from_s(8.06 + 0.1));
        assert!(stopped < 100.0, "{stopped}");
    }
}
