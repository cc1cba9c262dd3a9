//! What happens in a run besides requests that come one by one, to a device that does all it is asked: calls of several rows,
//! preparations that fail, and moments in which something else uses the device.

use rand::Rng;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Exp};
use weft_scheduler::{Span, Time};

/// Draws apart from all else, which is the same under any circumstances.
const STREAM: u64 = 0xC1BC;

/// How often what happens. By default nothing of it does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Circumstances {
    /// The share of arrivals that are calls of several rows; clients that wait for an answer send one.
    pub calls: f64,
    /// How many rows a call has at most.
    pub most_rows: u64,
    /// The share of preparations that fail, once requests come.
    pub failed_preparations: f64,
    /// A preparation takes anything up to so many times as long as it should, where this is above 0.
    pub slowest_preparation: f64,
    /// How often something else begins to use the device: in an idle moment, and what is launched meanwhile begins afterwards.
    pub pauses_per_s: f64,
    /// For how long.
    pub pause: Span,
}

/// The circumstances of one run, as they are drawn.
pub(crate) struct Drawn {
    circumstances: Circumstances,
    random: SmallRng,
}

impl Drawn {
    pub(crate) fn new(circumstances: Circumstances, seed: u64) -> Self {
        Self { circumstances, random: SmallRng::seed_from_u64(seed ^ STREAM) }
    }

    /// How many rows come together.
    pub(crate) fn rows(&mut self) -> u64 {
        let Circumstances { calls, most_rows, .. } = self.circumstances;
        match most_rows > 1 && self.happens(calls) {
            true => self.random.random_range(2..=most_rows),
            false => 1,
        }
    }

    /// How long a preparation takes that should take so long, and whether it fails.
    pub(crate) fn preparation(&mut self, should_take: Span) -> (Span, bool) {
        let Circumstances { failed_preparations, slowest_preparation, .. } = self.circumstances;
        let factor = match slowest_preparation > 0.0 {
            true => self.random.random_range(0.0..slowest_preparation),
            false => 1.0,
        };
        (should_take * factor, self.happens(failed_preparations))
    }

    /// When something else wants the device next, if ever.
    pub(crate) fn next_pause(&mut self, now: Time) -> Option<Time> {
        let gap = Exp::new(self.circumstances.pauses_per_s).ok();
        let gap = gap.filter(|_| self.circumstances.pauses_per_s > 0.0)?;
        Some(now + Span::from_s(gap.sample(&mut self.random)))
    }

    /// How long it uses the device.
    pub(crate) fn pause(&self) -> Span {
        self.circumstances.pause
    }

    fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && self.random.random_bool(share)
    }
}
