//! The first candidates of a search that has no measurement to learn from.

use super::ledger::Ledger;
use super::space::Space;

/// One of the first-listed candidates, which the device expects the most of, that lies far from all that were tried.
pub(super) fn diverse(space: &Space, ledger: &Ledger) -> Option<usize> {
    let tried: Vec<usize> = ledger.tried().collect();
    let candidates = ledger.len() as f64;
    let value = |candidate: usize| {
        let nearest =
            tried.iter().map(|&other| space.distance(candidate, other)).fold(1.0, f64::min);
        nearest * (1.0 - candidate as f64 / candidates)
    };
    // The first of equals wins, as it is the one that the device lists first.
    ledger
        .untried()
        .map(|candidate| (candidate, value(candidate)))
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
        .map(|(candidate, _)| candidate)
}
