//! What a learned search tries next: a start, then what the model favours, and now and then anything.

use std::cmp::Ordering;

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::{IteratorRandom, SliceRandom};

use super::code::Code;
use super::forecast::Forecast;
use super::ledger::Ledger;
use super::space::Space;
use super::{evolution, start};

/// How many candidates are tried before measurements decide, unless a model is informed by others.
pub(super) const START: usize = 8;

/// The same where a model is.
const INFORMED_START: usize = 2;

/// The share of proposals that go by chance.
const EXPLORATION: f64 = 0.1;

/// The share of the others that go to descendants of the fastest; the rest go to whatever the model favours.
const DESCENT: f64 = 0.5;

/// By how much a candidate that has to be compiled must be faster to be tried before one that has not, as a logarithm.
const COMPILING: f64 = 0.04;

/// A number with an order.
#[derive(PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// How many candidates a search tries before its measurements count.
pub(super) fn start_length(forecast: &Forecast) -> usize {
    if forecast.is_informed() { INFORMED_START } else { START }
}

/// The untried candidates by what is expected of them, as of one round of proposals.
pub(super) struct Favourites {
    /// The best at the end.
    children: Vec<usize>,
    all: Vec<usize>,
}

impl Favourites {
    /// Ranked by the model, or in any order where there is none.
    pub(super) fn new(
        space: &Space,
        ledger: &Ledger,
        forecast: &Forecast,
        code: &Code,
        random: &mut SmallRng,
    ) -> Self {
        let worth = |candidate: usize| match code.is_there(candidate) {
            true => forecast.expected(candidate),
            false => forecast.expected(candidate) + COMPILING,
        };
        let mut ranked = |candidates: Vec<usize>| {
            let mut candidates: Vec<usize> = candidates;
            if forecast.is_known() {
                // A tree expects the same of many; among these the device's order decides.
                candidates.sort_by_cached_key(|&candidate| Ordered(worth(candidate)));
                candidates.reverse();
            } else {
                candidates.shuffle(random);
            }
            candidates
        };
        let open = |candidate: &usize| code.may_be_tried(*candidate);
        let children = evolution::children(space, ledger).into_iter().filter(open).collect();
        let children = ranked(children);
        Self { children, all: ranked(ledger.untried().filter(open).collect()) }
    }

    fn pop(&mut self, ledger: &Ledger, code: &Code, from_children: bool) -> Option<usize> {
        let is_open = |candidate| ledger.is_untried(candidate) && code.may_be_tried(candidate);
        let next = |list: &mut Vec<usize>| {
            while list.pop_if(|candidate| !is_open(*candidate)).is_some() {}
            list.pop()
        };
        let child = if from_children { next(&mut self.children) } else { None };
        child.or_else(|| next(&mut self.all))
    }
}

/// The next candidate, if any is left. `favourites` are kept for the rest of the round.
pub(super) fn next(
    space: &Space,
    ledger: &Ledger,
    forecast: &Forecast,
    code: &Code,
    random: &mut SmallRng,
    favourites: &mut Option<Favourites>,
) -> Option<usize> {
    let tried = ledger.tried().count();
    let is_start = tried < start_length(forecast);
    if is_start && !forecast.is_informed() && tried % 2 == 1 {
        return start::diverse(space, ledger, code, random);
    }
    if !forecast.is_known() && (is_start || ledger.best().is_none()) {
        return ledger.untried().find(|&candidate| code.may_be_tried(candidate));
    }
    if !is_start && random.random_bool(EXPLORATION) {
        let there = ledger.untried().filter(|&candidate| code.may_be_tried_now(candidate));
        if let Some(drawn) = there.choose(random) {
            return Some(drawn);
        }
    }
    let from_children = random.random_bool(DESCENT);
    favourites.get_or_insert_with(|| Favourites::new(space, ledger, forecast, code, random)).pop(
        ledger,
        code,
        from_children,
    )
}
