//! When requests come that wait for nobody: one process per model, drawn from a seed.

use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp, Gamma};
use weft_scheduler::{Span, Time};

use crate::load::Load;

/// The instants at which one model's requests come.
pub struct Arrivals {
    gaps: Gaps,
    random: SmallRng,
    now: Time,
}

enum Gaps {
    None,
    Regular(Span),
    Gamma(Gamma<f64>),
    Exponential(Exp<f64>),
    /// Drawn at the highest rate, and thinned out to the rate of the instant.
    Thinned(Exp<f64>, Load),
    Recorded(Recorded),
}

impl Arrivals {
    /// A process of its own for each seed and model; none for clients, who wait for answers.
    pub fn new(load: &Load, seed: u64, model: u32) -> Self {
        let rate = load.greatest_per_s();
        let exponential = Exp::new(rate).ok().filter(|_| rate > 0.0 && rate.is_finite());
        let gaps = match *load {
            Load::Poisson { .. } => exponential.map(Gaps::Exponential),
            Load::Gamma { burstiness: 0.0, .. } => {
                exponential.map(|_| Gaps::Regular(Span::from_s(1.0 / rate)))
            }
            Load::Gamma { burstiness, .. } => exponential
                .and(Gamma::new(1.0 / burstiness, burstiness / rate).ok())
                .map(Gaps::Gamma),
            Load::SquareWave { .. } | Load::Diurnal { .. } => {
                exponential.map(|gaps| Gaps::Thinned(gaps, load.clone()))
            }
            Load::Trace { ref times, multiplicity } => {
                Some(Gaps::Recorded(Recorded::new(times.clone(), multiplicity)))
            }
            Load::ClosedLoop { .. } => None,
        };
        Self { gaps: gaps.unwrap_or(Gaps::None), random: random(seed, model), now: Time::START }
    }
}

/// Neighbouring seeds and models must not draw alike: a step of the golden ratio keeps them apart.
pub(crate) fn random(seed: u64, model: u32) -> SmallRng {
    SmallRng::seed_from_u64(seed ^ u64::from(model + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

impl Iterator for Arrivals {
    type Item = Time;

    fn next(&mut self) -> Option<Time> {
        let random = &mut self.random;
        loop {
            let gap = match &mut self.gaps {
                Gaps::None => return None,
                Gaps::Recorded(recorded) => return recorded.next(random),
                Gaps::Regular(gap) => *gap,
                Gaps::Exponential(gaps) | Gaps::Thinned(gaps, _) => {
                    Span::from_s(gaps.sample(random))
                }
                Gaps::Gamma(gaps) => Span::from_s(gaps.sample(random)),
            };
            self.now = self.now + gap.max(Span::from_nanos(1));
            match &self.gaps {
                Gaps::Thinned(_, load)
                    if random.random::<f64>() * load.greatest_per_s()
                        >= load.rate_per_s(self.now) => {}
                _ => return Some(self.now),
            }
        }
    }
}

/// A trace as it is replayed.
struct Recorded {
    times: Arc<[Time]>,
    multiplicity: f64,
    /// The place of the next time, and of the next request among those that come for the time before it.
    next: usize,
    copy: u32,
    copies: u32,
}

impl Recorded {
    fn new(times: Arc<[Time]>, multiplicity: f64) -> Self {
        Self { times, multiplicity, next: 0, copy: 0, copies: 0 }
    }

    /// Where more than one request comes for a time, they are spread evenly until the next time.
    fn next(&mut self, random: &mut SmallRng) -> Option<Time> {
        while self.copy == self.copies {
            self.times.get(self.next)?;
            let chance = self.multiplicity.fract();
            let is_one_more = chance > 0.0 && random.random::<f64>() < chance;
            (self.copy, self.copies) = (0, self.multiplicity as u32 + u32::from(is_one_more));
            self.next += 1;
        }
        let here = self.times[self.next - 1];
        let gap = self.times.get(self.next).map_or(Span::ZERO, |after| after.since(here));
        let at = here + gap * (f64::from(self.copy) / f64::from(self.copies));
        self.copy += 1;
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(load: Load, seconds: f64) -> usize {
        let end = Time::START + Span::from_s(seconds);
        Arrivals::new(&load, 7, 0).take_while(|&at| at < end).count()
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
            let times: Vec<f64> = Arrivals::new(&load, 3, 1)
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
    fn without_burstiness_all_gaps_are_equal() {
        let load = Load::Gamma { rate_per_s: 1000.0, burstiness: 0.0 };
        let times: Vec<Time> = Arrivals::new(&load, 3, 1).take(3).collect();
        assert_eq!(times, [at_us(1000), at_us(2000), at_us(3000)]);
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
        let seconds: Vec<u64> = Arrivals::new(&wave, 1, 0)
            .map(|at| at.since(Time::START).seconds() as u64)
            .take_while(|&second| second < 4)
            .collect();
        let in_second = |wanted: u64| seconds.iter().filter(|&&second| second == wanted).count();
        assert!(in_second(0) > 900 && in_second(2) > 900);
        assert!(in_second(1) < 40 && in_second(3) < 40);
    }

    #[test]
    fn a_day_has_its_mean_rate() {
        let day = Load::Diurnal {
            low_per_s: 100.0,
            high_per_s: 900.0,
            period: Span::from_s(20.0),
            phase: Span::from_s(3.0),
        };
        let whole = count(day, 100.0);
        assert!((49_000..51_000).contains(&whole), "{whole}");
    }

    #[test]
    fn a_trace_is_replayed_to_the_nanosecond_and_can_be_made_denser_or_thinner() {
        let times: Vec<Time> = (0..1000u64).map(|index| at_us(index * index)).collect();
        let trace = Load::Trace { times: Arc::from(&*times), multiplicity: 1.0 };
        let replay = |load: &Load| Arrivals::new(load, 1, 0).collect::<Vec<Time>>();
        assert_eq!(replay(&trace), times);
        let double = replay(&trace.scaled(2.0));
        assert_eq!(double.len(), 2000);
        assert!(
            double.is_sorted()
                && double[4] == at_us(4)
                && double[5] > at_us(4)
                && double[5] < at_us(9)
        );
        let some = replay(&trace.scaled(0.3));
        assert!((250..350).contains(&some.len()), "{}", some.len());
        assert!(some.iter().all(|at| times.contains(at)));
    }

    fn at_us(us: u64) -> Time {
        Time::START + Span::from_nanos(us * 1000)
    }

    #[test]
    fn the_same_seed_draws_the_same_and_another_does_not() {
        let first = |seed, model| {
            Arrivals::new(&Load::Poisson { rate_per_s: 10.0 }, seed, model)
                .take(5)
                .collect::<Vec<_>>()
        };
        assert_eq!(first(1, 0), first(1, 0));
        assert_ne!(first(1, 0), first(2, 0));
        assert_ne!(first(1, 0), first(1, 1));
    }
}
