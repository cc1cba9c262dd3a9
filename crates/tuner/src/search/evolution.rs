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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weft_device::{CandidateDescription, Screening};

    use super::super::Outcome;
    use super::*;

    #[test]
    fn children_differ_in_two_parameters_or_mix_two_parents() {
        let points = [
            [0, 0, 0, 0, 0, 0],
            [9, 9, 9, 9, 9, 9],
            [0, 0, 0, 0, 5, 5],
            [0, 0, 0, 5, 5, 5],
            [0, 0, 0, 9, 9, 9],
            [9, 9, 9, 0, 0, 5],
            [5, 5, 9, 9, 9, 9],
        ];
        let candidates = points.map(|point| CandidateDescription {
            name: format!("{point:?}"),
            parameters: point.to_vec(),
            features: Vec::new(),
            screening: Screening::OnAPart,
            code: None,
        });
        let space = Space::new(&candidates).unwrap();
        let mut ledger = Ledger::new(candidates.len());
        assert!(children(&space, &ledger).is_empty());
        ledger.record(0, Outcome::Time(Duration::from_micros(3)));
        assert_eq!(children(&space, &ledger), [2]);
        ledger.record(1, Outcome::Time(Duration::from_micros(2)));
        assert_eq!(children(&space, &ledger), [2, 4, 6]);
        ledger.record(4, Outcome::Disqualified);
        assert_eq!(children(&space, &ledger), [2, 6]);
    }
}
