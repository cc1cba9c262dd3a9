//! The first candidates of a search that has little to go by.

use rand::Rng;
use rand::rngs::SmallRng;

use super::code::Code;
use super::ledger::Ledger;
use super::space::Space;

/// Among how many drawn candidates the most unusual is taken.
const DRAWN: usize = 4;

/// Of how many candidates that need not be compiled one is drawn, rather than of all.
const ENOUGH: usize = 24;

/// A candidate unlike those that were tried. It is drawn, so that operators with the same candidates begin differently
/// and a model learns of more of them; and from the first-listed rather than the last, since the device expects more of
/// these.
pub(super) fn diverse(
    space: &Space,
    ledger: &Ledger,
    code: &Code,
    random: &mut SmallRng,
) -> Option<usize> {
    let mut untried: Vec<usize> =
        ledger.untried().filter(|&candidate| code.may_be_tried_now(candidate)).collect();
    if untried.len() < ENOUGH {
        untried = ledger.untried().filter(|&candidate| code.may_be_tried(candidate)).collect();
    }
    let tried: Vec<usize> = ledger.tried().collect();
    let novelty = |candidate: usize| {
        tried.iter().map(|&other| space.distance(candidate, other)).fold(f64::INFINITY, f64::min)
    };
    let mut draw = || {
        let position: f64 = random.random_range(0.0..1.0);
        untried.get((position * position * untried.len() as f64) as usize).copied()
    };
    let drawn = (0..DRAWN).filter_map(|_| draw());
    drawn.max_by(|&a, &b| novelty(a).total_cmp(&novelty(b)))
}
