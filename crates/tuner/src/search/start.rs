//! The first candidates of a search that has little to go by.

use rand::Rng;
use rand::rngs::SmallRng;

use super::ledger::Ledger;
use super::space::Space;

/// Among how many drawn candidates the most unusual is taken.
const DRAWN: usize = 4;

/// A candidate unlike those that were tried. It is drawn, so that operators with the same candidates begin differently
/// and a model learns of more of them; and from the first-listed rather than the last, since the device expects more of
/// these.
pub(super) fn diverse(space: &Space, ledger: &Ledger, random: &mut SmallRng) -> Option<usize> {
    let untried: Vec<usize> = ledger.untried().collect();
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
