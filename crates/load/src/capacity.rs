//! The most load that a server carries: the highest rates at which a share of the requests is answered in time.

use crate::error::LoadError;
use crate::generator::Progress;
use crate::outcome::{DELAY_PERCENTILE, Outcome};
use crate::session::{RunOptions, Session};

/// The most runs of one search.
const MAX_STEPS: usize = 24;

/// Where the delay of sending takes more than this share of the tightest objective, a missed target says nothing about the
/// server.
const GENERATOR_SHARE: f64 = 0.1;

/// What is searched for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityOptions {
    /// The share of requests, of those with an objective, that must be answered in time.
    pub target: f64,
    /// The search ends when what is carried and what is not are this close: 0.05 for 5 %.
    pub precision: f64,
}

/// What one run of a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What rates were multiplied with.
    pub factor: f64,
    /// What came of it.
    pub outcome: Outcome,
    /// Whether the target was met.
    pub is_carried: bool,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// In the order they were run.
    pub steps: Vec<Step>,
    /// Why the search ended before its time.
    pub stopped: Option<Stopped>,
}

/// Why a search ended before what is carried and what is not were close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Somebody ended it.
    Interrupted,
    /// The generator fell behind: what is beyond cannot be told from here.
    Generator,
    /// Too many runs.
    Steps,
    /// No model has both a rate and an objective, or nothing was due.
    NothingToAttain,
}

impl Capacity {
    /// The run with the highest rates that were carried.
    pub fn best(&self) -> Option<&Step> {
        let carried = self.steps.iter().filter(|step| step.is_carried);
        carried.max_by(|one, other| one.factor.total_cmp(&other.factor))
    }

    /// The run with the lowest rates that were not.
    pub fn least_too_much(&self) -> Option<&Step> {
        let too_much = self.steps.iter().filter(|step| !step.is_carried);
        too_much.min_by(|one, other| one.factor.total_cmp(&other.factor))
    }
}

/// Searches for the highest rates that the server carries: doubles or halves those of the session's models until the target
/// is met on one side and missed on the other, and closes in. Attainment is taken to fall with load: where it does not,
/// this is a load that is carried next to one that is not.
pub async fn find_capacity(
    session: &mut Session,
    run: &RunOptions,
    options: &CapacityOptions,
    watch: &mut dyn FnMut(usize, &Progress),
    stop: &mut impl AsyncFnMut(),
) -> Result<Capacity, LoadError> {
    let mut search = Search { low: None, high: None, next: run.factor };
    let mut steps: Vec<Step> = Vec::new();
    let stopped = loop {
        let number = steps.len() + 1;
        // The same arrivals again would let chance decide in the same way again.
        let step = RunOptions { factor: search.next, seed: run.seed + steps.len() as u64, ..*run };
        let outcome = session.run(&step, &mut |progress| watch(number, progress), stop).await?;
        if outcome.is_interrupted {
            break Some(Stopped::Interrupted);
        }
        let Some(attainment) = outcome.attainment() else { break Some(Stopped::NothingToAttain) };
        let is_carried = attainment >= options.target;
        let is_of_generator = !is_carried && is_of_generator(&outcome);
        steps.push(Step { factor: search.next, outcome, is_carried });
        if is_of_generator {
            break Some(Stopped::Generator);
        }
        search.note(is_carried);
        if search.is_close(options.precision) {
            break None;
        }
        if steps.len() == MAX_STEPS {
            break Some(Stopped::Steps);
        }
    };
    Ok(Capacity { steps, stopped })
}

/// Whether requests were sent so late that objectives were missed for it.
fn is_of_generator(outcome: &Outcome) -> bool {
    let tightest = outcome.models.iter().filter_map(|model| model.slo).min();
    let delay = outcome.total().send_delays.quantile(DELAY_PERCENTILE);
    tightest.is_some_and(|slo| delay > slo * GENERATOR_SHARE)
}

/// Where the limit is, as far as is known.
struct Search {
    low: Option<f64>,
    high: Option<f64>,
    next: f64,
}

impl Search {
    fn note(&mut self, is_carried: bool) {
        let known = if is_carried { &mut self.low } else { &mut self.high };
        *known = Some(self.next);
        self.next = match (self.low, self.high) {
            (Some(low), Some(high)) => (low * high).sqrt(),
            (Some(low), None) => low * 2.0,
            (None, Some(high)) => high / 2.0,
            (None, None) => self.next,
        };
    }

    fn is_close(&self, precision: f64) -> bool {
        matches!((self.low, self.high), (Some(low), Some(high)) if high <= low * (1.0 + precision))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_limit_is_closed_in_on(limit in 0.01f64..100.0, precision in 0.01f64..0.2) {
            let mut search = Search { low: None, high: None, next: 1.0 };
            let mut steps = 0;
            while !search.is_close(precision) {
                let is_carried = search.next <= limit;
                search.note(is_carried);
                steps += 1;
                prop_assert!(steps <= MAX_STEPS, "{search:?}", search = (search.low, search.high));
            }
            let (low, high) = (search.low.unwrap(), search.high.unwrap());
            prop_assert!(low <= limit && limit < high && high <= low * (1.0 + precision));
        }
    }
}
