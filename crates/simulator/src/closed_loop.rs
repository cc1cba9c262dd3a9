//! Clients that wait for what comes of their request before they send the next.

use rand::rngs::SmallRng;
use rand_distr::{Distribution, Exp};
use weft_scheduler::{Span, Time};

use crate::arrivals::random;

/// A client whose request was declined or dropped waits at least so long before it asks again: one that does not think
/// would otherwise ask forever at the same instant.
const LEAST_RETRY: Span = Span::from_nanos(1_000_000);

/// The clients of one model.
pub struct Clients {
    count: u32,
    /// `None` where they do not think.
    think: Option<Exp<f64>>,
    random: SmallRng,
}

impl Clients {
    /// So many, who think so long on average: for each seed and model other times.
    pub fn new(count: u32, think: Span, seed: u64, model: u32) -> Self {
        let think = Some(think).filter(|&think| think > Span::ZERO);
        let think = think.and_then(|think| Exp::new(1.0 / think.seconds()).ok());
        Self { count, think, random: random(seed, model) }
    }

    /// When each of them sends its first request.
    pub fn begin(&mut self) -> Vec<Time> {
        (0..self.count).map(|_| Time::START + self.thought()).collect()
    }

    /// When a client asks again whose request was answered.
    pub fn after_answer(&mut self, now: Time) -> Time {
        now + self.thought()
    }

    /// When a client asks again whose request was declined or dropped.
    pub fn after_refusal(&mut self, now: Time) -> Time {
        now + self.thought().max(LEAST_RETRY)
    }

    fn thought(&mut self) -> Span {
        self.think.map_or(Span::ZERO, |think| Span::from_s(think.sample(&mut self.random)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_last_as_long_as_was_said_on_average() {
        let mut clients = Clients::new(20_000, Span::from_us(500.0), 1, 0);
        let times = clients.begin();
        assert_eq!(times.len(), 20_000);
        let sum: f64 = times.iter().map(|at| at.since(Time::START).us()).sum();
        assert!((480.0..520.0).contains(&(sum / 20_000.0)));
        let now = Time::START + Span::from_s(1.0);
        assert!(clients.after_refusal(now).since(now) >= LEAST_RETRY);
    }

    #[test]
    fn who_does_not_think_asks_at_once_but_not_after_a_refusal() {
        let mut clients = Clients::new(2, Span::ZERO, 1, 0);
        assert_eq!(clients.begin(), [Time::START; 2]);
        assert_eq!(clients.after_answer(Time::START), Time::START);
        assert_eq!(clients.after_refusal(Time::START), Time::START + LEAST_RETRY);
    }
}
