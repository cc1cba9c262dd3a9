//! The candidates of one operator as points of a parameter space.

use weft_device::CandidateDescription;

use super::SearchError;

/// Points, by the ranks of their parameters' values: a tile of 64 lies next to one of 128 where there is none between.
#[derive(Clone, Debug)]
pub(super) struct Space {
    dimensions: usize,
    /// For each candidate and parameter, the rank of its value among all that occur.
    ranks: Vec<u16>,
    /// For each parameter, the greatest rank.
    greatest: Vec<u16>,
}

impl Space {
    pub(super) fn new(candidates: &[CandidateDescription]) -> Result<Self, SearchError> {
        let first = candidates.first().ok_or(SearchError::NoCandidates)?;
        let dimensions = first.parameters.len();
        let differs = |candidate: &CandidateDescription| {
            candidate.parameters.len() != dimensions
                || candidate.features.len() != first.features.len()
        };
        if let Some(candidate) = candidates.iter().position(differs) {
            return Err(SearchError::Uneven { candidate });
        }
        let mut ranks = vec![0; candidates.len() * dimensions];
        let mut greatest = Vec::with_capacity(dimensions);
        for parameter in 0..dimensions {
            let mut values: Vec<i32> =
                candidates.iter().map(|candidate| candidate.parameters[parameter]).collect();
            values.sort_unstable();
            values.dedup();
            let rank = |position: usize| u16::try_from(position).unwrap_or(u16::MAX);
            for (candidate, description) in candidates.iter().enumerate() {
                let position = values.partition_point(|&v| v < description.parameters[parameter]);
                ranks[candidate * dimensions + parameter] = rank(position);
            }
            greatest.push(rank(values.len() - 1));
        }
        Ok(Self { dimensions, ranks, greatest })
    }

    /// The ranks of a candidate's parameters.
    pub(super) fn point(&self, candidate: usize) -> &[u16] {
        &self.ranks[candidate * self.dimensions..][..self.dimensions]
    }

    /// How far apart two candidates are: the sum over the parameters, each of which counts 1 from end to end. A parameter
    /// with two values is no scale, so that a difference there is a whole step.
    pub(super) fn distance(&self, one: usize, other: usize) -> f64 {
        let pairs = self.point(one).iter().zip(self.point(other));
        pairs
            .zip(&self.greatest)
            .map(|((a, b), greatest)| f64::from(a.abs_diff(*b)) / f64::from((*greatest).max(1)))
            .sum()
    }
}
