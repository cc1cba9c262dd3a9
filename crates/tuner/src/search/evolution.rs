//! Candidates that descend from the fastest so far.

use super::ledger::Ledger;
use super::space::Space;

/// How many of the fastest have descendants.
const PARENTS: usize = 8;

/// In how many parameters a child may differ from its only parent.
const MUTATIONS: usize = 2;

/// The untried candidates that differ little from one of the fastest, or that mix two of them.
pub(super) fn children(space: &Space, ledger: &Ledger) -> Vec<usize> {
    let mut parents: Vec<usize> =
        ledger.by_time().iter().map(|&(candidate, _)| candidate).collect();
    parents.truncate(PARENTS);
    ledger.untried().filter(|&candidate| descends(space, candidate, &parents)).collect()
}

fn descends(space: &Space, candidate: usize, parents: &[usize]) -> bool {
    let point = space.point(candidate);
    let is_mutant = |&parent: &usize| {
        let pairs = point.iter().zip(space.point(parent));
        pairs.filter(|(own, other)| own != other).count() <= MUTATIONS
    };
    let is_mixture = |one: usize, other: usize| {
        let both = space.point(one).iter().zip(space.point(other));
        point.iter().zip(both).all(|(own, (one, other))| own == one || own == other)
    };
    parents.iter().any(is_mutant)
        || parents
            .iter()
            .enumerate()
            .any(|(index, &one)| parents[..index].iter().any(|&other| is_mixture(one, other)))
}
