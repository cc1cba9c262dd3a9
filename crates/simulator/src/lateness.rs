//! Tenants whose requests come late: much of the time to their deadlines has passed by then.

use rand::Rng;
use rand::rngs::SmallRng;
use weft_scheduler::Span;

use crate::arrivals::random;

/// Draws apart from a model's arrivals, which are the same whether its requests are late or not.
const STREAM: u64 = 0x1A7E;

/// How often and how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lateness {
    /// The share of requests that come late.
    pub share: f64,
    /// The share of the objective that has passed when they come.
    pub spent: f64,
}

/// How long each request of one model has to its deadline when it comes.
pub(crate) struct TimeLeft {
    objective: Span,
    lateness: Option<Lateness>,
    random: SmallRng,
}

impl TimeLeft {
    pub(crate) fn new(objective: Span, lateness: Option<Lateness>, seed: u64, model: u32) -> Self {
        Self { objective, lateness, random: random(seed ^ STREAM, model) }
    }

    pub(crate) fn draw(&mut self) -> Span {
        match self.lateness {
            Some(Lateness { share, spent }) if self.random.random::<f64>() < share => {
                self.objective * (1.0 - spent)
            }
            _ => self.objective,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_was_asked_for_is_late_by_as_much() {
        let objective = Span::from_us(1000.0);
        let mut left = TimeLeft::new(objective, Some(Lateness { share: 0.25, spent: 0.8 }), 1, 2);
        let drawn: Vec<Span> = (0..10_000).map(|_| left.draw()).collect();
        let late = drawn.iter().filter(|left| **left == Span::from_us(200.0)).count();
        let others = drawn.iter().filter(|left| **left == objective).count();
        assert!((2300..2700).contains(&late) && late + others == 10_000, "{late} {others}");
    }
}
