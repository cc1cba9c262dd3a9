//! When requests come: one process per model, drawn from a seed.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Exp, Gamma};
use weft_scheduler::{Span, Time};

/// How requests of one model come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Independently of each other.
    Poisson {
        /// On average.
        rate_per_s: f64,
    },
    /// In bursts: gaps with a squared coefficient of variation above 1; below 1 they are more regular.
    Gamma {
        /// On average.
        rate_per_s: f64,
        /// The squared coefficient of variation of the gaps.
        burstiness: f64,
    },
    /// Independently of each other, at a high rate for the first part of every period and at a low one for the rest.
    SquareWave {
        /// In the first part.
        high_per_s: f64,
        /// In the rest.
        low_per_s: f64,
        /// The length of both together.
        period: Span,
        /// The share of the first part, from 0 to 1.
        share: f64,
        /// Where in a period the run begins.
        phase: Span,
    },
}

impl Load {
    /// The rate at an instant.
    pub fn rate_per_s(&self, at: Time) -> f64 {
        match *self {
            Load::Poisson { rate_per_s } | Load::Gamma { rate_per_s, .. } => rate_per_s,
            Load::SquareWave { high_per_s, low_per_s, period, share, phase } => {
                let position = (at.since(Time::START) + phase).nanos() % period.nanos().max(1);
                match (position as f64) < period.nanos() as f64 * share {
                    true => high_per_s,
                    false => low_per_s,
                }
            }
        }
    }

    /// The same load with its rates multiplied.
    pub fn scaled(self, factor: f64) -> Self {
        match self {
            Load::Poisson { rate_per_s } => Load::Poisson { rate_per_s: rate_per_s * factor },
            Load::Gamma { rate_per_s, burstiness } => {
                Load::Gamma { rate_per_s: rate_per_s * factor, burstiness }
            }
            Load::SquareWave { high_per_s, low_per_s, period, share, phase } => Load::SquareWave {
                high_per_s: high_per_s * factor,
                low_per_s: low_per_s * factor,
                period,
                share,
                phase,
            },
        }
    }

    /// The highest rate that it ever has.
    fn greatest_per_s(&self) -> f64 {
        match *self {
            Load::Poisson { rate_per_s } | Load::Gamma { rate_per_s, .. } => rate_per_s,
            Load::SquareWave { high_per_s, low_per_s, .. } => high_per_s.max(low_per_s),
        }
    }
}

/// The instants at which one model's requests come.
pub struct Arrivals {
    load: Load,
    gaps: Gaps,
    random: SmallRng,
    now: Time,
}

enum Gaps {
    None,
    Exponential(Exp<f64>),
    Gamma(Gamma<f64>),
}

impl Arrivals {
    /// A process of its own for each seed and model.
    pub fn new(load: Load, seed: u64, model: u32) -> Self {
        let rate = load.greatest_per_s();
        let gaps = match load {
            _ if !(rate > 0.0 && rate.is_finite()) => Gaps::None,
            Load::Gamma { burstiness, .. } if burstiness > 0.0 => {
                Gamma::new(1.0 / burstiness, burstiness / rate).map_or(Gaps::None, Gaps::Gamma)
            }
            _ => Exp::new(rate).map_or(Gaps::None, Gaps::Exponential),
        };
        // Neighbouring seeds and models must not draw alike: a step of the golden ratio keeps them apart.
        let random = SmallRng::seed_from_u64(
            seed ^ u64::from(model + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        );
        Self { load, gaps, random, now: Time::START }
    }
}

impl Iterator for Arrivals {
    type Item = Time;

    fn next(&mut self) -> Option<Time> {
        loop {
            let gap = match &self.gaps {
                Gaps::None => return None,
                Gaps::Exponential(gaps) => gaps.sample(&mut self.random),
                Gaps::Gamma(gaps) => gaps.sample(&mut self.random),
            };
            self.now = self.now + Span::from_s(gap).max(Span::from_nanos(1));
            // Where the rate changes, arrivals at the highest rate are thinned out to the rate of the instant.
            let kept = self.load.rate_per_s(self.now) / self.load.greatest_per_s();
            let draw = if kept < 1.0 { rand::Rng::random::<f64>(&mut self.random) } else { 0.0 };
            if draw < kept {
                return Some(self.now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(load: Load, seconds: f64) -> usize {
        let end = Time::START + Span::from_s(seconds);
        Arrivals::new(load, 7, 0).take_while(|&at| at < end).count()
    }

    #[test]
    fn rates_are_what_was_asked_for() {
        let poisson = count(Load::Poisson { rate_per_s: 1000.0 }, 100.0);
        assert!((98_000..102_000).contains(&poisson), "{poisson}");
        let bursty = count(Load::Gamma { rate_per_s: 1000.0, burstiness: 4.0 }, 100.0);
        assert!((97_000..103_000).contains(&bursty), "{bursty}");
        assert_eq!(count(Load::Poisson { rate_per_s: 0.0 }, 1.0), 0);
    }

    #[test]
    fn bursts_come_closer_together_than_chance_puts_them() {
        let variation = |load| {
            let times: Vec<f64> = Arrivals::new(load, 3, 1)
                .take(20_000)
                .map(|at: Time| at.since(Time::START).seconds())
                .collect();
            let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance =
                gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            variance / (mean * mean)
        };
        let plain = variation(Load::Poisson { rate_per_s: 100.0 });
        let bursty = variation(Load::Gamma { rate_per_s: 100.0, burstiness: 4.0 });
        assert!((0.9..1.1).contains(&plain) && (3.5..4.5).contains(&bursty), "{plain} {bursty}");
    }

    #[test]
    fn a_square_wave_is_high_and_low_in_turns() {
        let wave = Load::SquareWave {
            high_per_s: 1000.0,
            low_per_s: 10.0,
            period: Span::from_s(2.0),
            share: 0.5,
            phase: Span::ZERO,
        };
        let seconds: Vec<u64> = Arrivals::new(wave, 1, 0)
            .map(|at| at.since(Time::START).seconds() as u64)
            .take_while(|&second| second < 4)
            .collect();
        let in_second = |wanted: u64| seconds.iter().filter(|&&second| second == wanted).count();
        assert!(in_second(0) > 900 && in_second(2) > 900);
        assert!(in_second(1) < 40 && in_second(3) < 40);
    }

    #[test]
    fn the_same_seed_draws_the_same_and_another_does_not() {
        let first = |seed, model| {
            Arrivals::new(Load::Poisson { rate_per_s: 10.0 }, seed, model)
                .take(5)
                .collect::<Vec<_>>()
        };
        assert_eq!(first(1, 0), first(1, 0));
        assert_ne!(first(1, 0), first(2, 0));
        assert_ne!(first(1, 0), first(1, 1));
    }
}
