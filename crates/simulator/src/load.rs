//! How requests of one model come.

use std::f64::consts::TAU;
use std::sync::Arc;

use weft_scheduler::{Span, Time};

/// How requests of one model come.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Independently of each other.
    Poisson {
        /// On average.
        rate_per_s: f64,
    },
    /// In bursts: gaps with a squared coefficient of variation above 1; below 1 they are more regular, at 0 all equal.
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
    /// Independently of each other, at a rate that swings between two as a sine does, from low over high to low in every
    /// period.
    Diurnal {
        /// At night.
        low_per_s: f64,
        /// At noon.
        high_per_s: f64,
        /// The length of a day.
        period: Span,
        /// Where in a day the run begins.
        phase: Span,
    },
    /// When they came at another time.
    Trace {
        /// From the beginning of the run, in order.
        times: Arc<[Time]>,
        /// How many requests come for each of the times, on average: one where the trace is replayed as it is.
        multiplicity: f64,
    },
    /// From clients each of which waits for what comes of its request, thinks, and sends the next.
    ClosedLoop {
        /// How many there are.
        clients: u32,
        /// How long they think on average; times are exponentially distributed.
        think: Span,
    },
}

impl Load {
    /// The rate at an instant: for a trace its average, for clients the most that they ask for when answers take no time
    /// at all.
    pub fn rate_per_s(&self, at: Time) -> f64 {
        match *self {
            Load::Poisson { rate_per_s } | Load::Gamma { rate_per_s, .. } => rate_per_s,
            Load::SquareWave { high_per_s, low_per_s, period, share, phase } => {
                match position(at, period, phase) < share {
                    true => high_per_s,
                    false => low_per_s,
                }
            }
            Load::Diurnal { low_per_s, high_per_s, period, phase } => {
                let height = (1.0 - (position(at, period, phase) * TAU).cos()) / 2.0;
                low_per_s + (high_per_s - low_per_s) * height
            }
            Load::Trace { ref times, multiplicity } => {
                let length = times.last().map_or(Span::ZERO, |last| last.since(Time::START));
                times.len() as f64 * multiplicity / length.seconds().max(1e-9)
            }
            Load::ClosedLoop { clients, think } => f64::from(clients) / think.seconds().max(1e-9),
        }
    }

    /// The rate over a long time.
    pub fn mean_per_s(&self) -> f64 {
        match *self {
            Load::SquareWave { high_per_s, low_per_s, share, .. } => {
                low_per_s + (high_per_s - low_per_s) * share
            }
            Load::Diurnal { low_per_s, high_per_s, .. } => (low_per_s + high_per_s) / 2.0,
            _ => self.rate_per_s(Time::START),
        }
    }

    /// The same load with its rates multiplied, or its clients.
    pub fn scaled(&self, factor: f64) -> Self {
        match *self {
            Load::Poisson { rate_per_s } => Load::Poisson { rate_per_s: rate_per_s * factor },
            Load::Gamma { rate_per_s, burstiness } => {
                Load::Gamma { rate_per_s: rate_per_s * factor, burstiness }
            }
            Load::SquareWave { high_per_s, low_per_s, period, share, phase } => {
                let (high_per_s, low_per_s) = (high_per_s * factor, low_per_s * factor);
                Load::SquareWave { high_per_s, low_per_s, period, share, phase }
            }
            Load::Diurnal { low_per_s, high_per_s, period, phase } => {
                let (high_per_s, low_per_s) = (high_per_s * factor, low_per_s * factor);
                Load::Diurnal { low_per_s, high_per_s, period, phase }
            }
            Load::Trace { ref times, multiplicity } => {
                Load::Trace { times: times.clone(), multiplicity: multiplicity * factor }
            }
            Load::ClosedLoop { clients, think } => {
                Load::ClosedLoop { clients: (f64::from(clients) * factor).round() as u32, think }
            }
        }
    }

    /// The loads of so many replicas that requests are handed to at random: together they are this load.
    pub fn split(&self, parts: u32) -> Vec<Self> {
        let share = 1.0 / f64::from(parts.max(1));
        let part = |index: u32| match *self {
            // Gaps between requests of which only some are kept are more irregular or less, the closer to chance the
            // fewer are kept.
            Load::Gamma { rate_per_s, burstiness } => Load::Gamma {
                rate_per_s: rate_per_s * share,
                burstiness: 1.0 + (burstiness - 1.0) * share,
            },
            Load::Trace { ref times, multiplicity } => {
                let own = times.iter().skip(index as usize).step_by(parts as usize);
                Load::Trace { times: own.copied().collect(), multiplicity }
            }
            Load::ClosedLoop { clients, think } => Load::ClosedLoop {
                clients: clients / parts + u32::from(index < clients % parts),
                think,
            },
            _ => self.scaled(share),
        };
        (0..parts).map(part).collect()
    }

    /// The highest rate that it ever has.
    pub fn greatest_per_s(&self) -> f64 {
        match *self {
            Load::SquareWave { high_per_s, low_per_s, .. }
            | Load::Diurnal { high_per_s, low_per_s, .. } => high_per_s.max(low_per_s),
            _ => self.rate_per_s(Time::START),
        }
    }
}

/// Where in a period an instant is, from 0 to 1.
fn position(at: Time, period: Span, phase: Span) -> f64 {
    let period = period.nanos().max(1);
    let inside = (at.since(Time::START) + phase).nanos() % period;
    inside as f64 / period as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::START + Span::from_s(seconds)
    }

    #[test]
    fn days_begin_low_and_are_high_at_noon() {
        let load = Load::Diurnal {
            low_per_s: 10.0,
            high_per_s: 90.0,
            period: Span::from_s(8.0),
            phase: Span::ZERO,
        };
        for (seconds, rate) in [(0.0, 10.0), (2.0, 50.0), (4.0, 90.0), (8.0, 10.0), (14.0, 50.0)] {
            assert!((load.rate_per_s(at(seconds)) - rate).abs() < 1e-6, "at {seconds}");
        }
        assert_eq!((load.greatest_per_s(), load.mean_per_s()), (90.0, 50.0));
    }

    #[test]
    fn parts_of_a_load_are_together_the_whole() {
        let times: Arc<[Time]> = (0..10).map(|second| at(f64::from(second))).collect();
        let trace = Load::Trace { times: times.clone(), multiplicity: 1.0 };
        let mut together: Vec<Time> = Vec::new();
        for part in trace.split(3) {
            let Load::Trace { times, .. } = part else { panic!("a trace is split into traces") };
            together.extend(times.iter());
        }
        together.sort_unstable();
        assert_eq!(together, times.to_vec());
        let clients = Load::ClosedLoop { clients: 8, think: Span::ZERO }.split(3);
        let count = |load: &Load| match load {
            Load::ClosedLoop { clients, .. } => *clients,
            _ => 0,
        };
        assert_eq!(clients.iter().map(count).collect::<Vec<_>>(), [3, 3, 2]);
        let bursty = Load::Gamma { rate_per_s: 100.0, burstiness: 5.0 };
        assert_eq!(bursty.split(4)[3], Load::Gamma { rate_per_s: 25.0, burstiness: 2.0 });
    }
}
