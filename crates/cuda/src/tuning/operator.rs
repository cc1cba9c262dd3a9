//! One operator with all its candidates.

use std::sync::{Arc, OnceLock};

use weft_device::{CandidateDescription, DeviceError, OperatorKey, Screening, TunableOperator};
use xxhash_rust::xxh3::Xxh3;

use super::trial_memory::Expected;
use crate::Precision;
use crate::choosing::operator_key;
use crate::driver::CudaError;
use crate::gpu::Gpu;
use crate::launch::{Candidate, KernelSource, Traits};
use crate::plan::chooser::{Extent, Problem};

/// An operator of some model, on partitions of one size.
pub(super) struct CudaOperator {
    key: OperatorKey,
    descriptions: Vec<CandidateDescription>,
    pub(super) candidates: Vec<Candidate>,
    /// What the others are held to: a plain kernel, or the first candidate where there is none.
    pub(super) reference: Candidate,
    pub(super) inputs: Vec<Option<Extent>>,
    pub(super) outputs: Vec<Option<Extent>>,
    pub(super) occurrences: usize,
    pub(super) precision: Precision,
    /// The size of the partitions that it is for.
    pub(super) sm_count: u32,
    pub(super) gpu: Arc<Gpu>,
    /// Inputs and right results, made when the first candidate is tried.
    pub(super) expected: OnceLock<Result<Expected, CudaError>>,
}

impl CudaOperator {
    /// `None` where there is nothing to choose.
    pub(super) fn new(problem: &Problem<'_>, sm_count: u32, gpu: &Arc<Gpu>) -> Option<Self> {
        let operator = problem.operator.filter(|_| problem.candidates.len() > 1)?;
        let candidates = problem.candidates.to_vec();
        Some(Self {
            key: operator_key(operator, problem.precision),
            descriptions: candidates.iter().enumerate().map(describe).collect(),
            reference: problem.reference.unwrap_or(&candidates[0]).clone(),
            candidates,
            inputs: problem.inputs.clone(),
            outputs: problem.outputs.clone(),
            occurrences: 1,
            precision: problem.precision,
            sm_count,
            gpu: gpu.clone(),
            expected: OnceLock::new(),
        })
    }
}

/// What a search is told of the candidate of a number.
fn describe((number, candidate): (usize, &Candidate)) -> CandidateDescription {
    let family = match candidate.library_call {
        Some(_) => Traits::LIBRARY,
        None => Traits::OTHER,
    };
    let (mut parameters, mut features) = match &candidate.traits {
        Some(traits) => (traits.parameters.clone(), traits.features.clone()),
        None => (vec![family, i32::try_from(number).unwrap_or(i32::MAX)], vec![family as f32]),
    };
    parameters.resize(Traits::PARAMETERS, 0);
    features.resize(Traits::FEATURES, 0.0);
    CandidateDescription {
        name: candidate.name.clone(),
        parameters,
        features,
        // Blocks of the template compute tiles of their own; of other kernels that is not known.
        screening: match (&candidate.traits, &candidate.library_call) {
            // The host takes long to prepare a call, one after another.
            (_, Some(_)) => Screening::Spare,
            (Some(_), None) => Screening::OnAPart,
            (None, None) => Screening::OnItsSize,
        },
        code: candidate.launches.last().map(|launch| code_of(&launch.source)),
    }
}

/// Equal for equal machine code.
fn code_of(source: &KernelSource) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(source.template.as_bytes());
    hash.update(source.generated.as_bytes());
    for (name, value) in &source.defines {
        hash.update(name.as_bytes());
        hash.update(value.as_bytes());
    }
    hash.digest()
}

impl TunableOperator for CudaOperator {
    fn key(&self) -> &OperatorKey {
        &self.key
    }

    fn candidates(&self) -> &[CandidateDescription] {
        &self.descriptions
    }

    fn occurrences(&self) -> usize {
        self.occurrences
    }

    fn compile(&self, candidate: usize) -> Result<(), DeviceError> {
        let launches = self.candidates[candidate].launches.iter().chain(&self.reference.launches);
        for launch in launches {
            self.gpu.kernels.get(&launch.source)?;
        }
        Ok(())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
