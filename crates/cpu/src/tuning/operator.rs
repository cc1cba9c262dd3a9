//! An operator of a model with its candidates.

use weft_device::{CandidateDescription, DeviceError, OperatorKey, Screening, TunableOperator};

use super::candidate::Candidate;
use super::features::{features, parameters};
use super::fused_operator::FusedOperator;
use crate::Isa;

/// An operator on partitions of one size.
pub(super) struct CpuOperator {
    fused: FusedOperator,
    key: OperatorKey,
    workers: usize,
    candidates: Vec<Candidate>,
    descriptions: Vec<CandidateDescription>,
    occurrences: usize,
}

impl CpuOperator {
    /// The operator, where there are several ways to compute it.
    pub(super) fn new(
        fused: FusedOperator,
        occurrences: usize,
        isa: Isa,
        workers: usize,
    ) -> Option<Self> {
        let candidates = fused.candidates(isa, workers);
        let descriptions: Vec<CandidateDescription> = candidates
            .iter()
            .map(|candidate| CandidateDescription {
                name: candidate.to_string(),
                parameters: parameters(candidate),
                features: features(&fused, candidate, isa, workers),
                screening: Screening::OnItsSize,
                code: None,
            })
            .collect();
        let key = fused.key();
        (candidates.len() > 1).then_some(Self {
            fused,
            key,
            workers,
            candidates,
            descriptions,
            occurrences,
        })
    }

    pub(super) fn fused(&self) -> &FusedOperator {
        &self.fused
    }

    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    pub(super) fn candidate(&self, index: usize) -> Option<&Candidate> {
        self.candidates.get(index)
    }
}

impl TunableOperator for CpuOperator {
    fn key(&self) -> &OperatorKey {
        &self.key
    }

    fn candidates(&self) -> &[CandidateDescription] {
        &self.descriptions
    }

    fn occurrences(&self) -> usize {
        self.occurrences
    }

    /// Every kernel is part of this program; weights are packed where they are used, since only there they are cold or warm
    /// as they will be.
    fn compile(&self, _: usize) -> Result<(), DeviceError> {
        Ok(())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
