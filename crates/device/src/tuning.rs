//! What a device offers to those who tune its kernels, and what they tell it in return.

use std::sync::Arc;
use std::time::Duration;

use crate::{DeviceError, LoadedModel, UnitSet};

/// What a measurement holds for: on another chip, under another driver or with other kernels it says nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Platform {
    /// The product name, and what its kernels are compiled for.
    pub chip: String,
    /// The version of what stands between the process and the chip.
    pub driver: String,
    /// The version of the kernels: it changes when their code does.
    pub kernels: String,
}

/// An operator at fixed shapes, with all that its kernels are chosen by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperatorKey {
    /// What is computed, for people and as an identity: kind, shapes, what is fused into it.
    pub operator: String,
    /// What it is computed at.
    pub precision: String,
}

/// Which candidates were found to be the fastest.
pub trait KernelChoices: Send + Sync {
    /// The name of the candidate to take on a partition of so many cores or SMs; `None` where nothing is known of the
    /// operator.
    fn choice(&self, operator: &OperatorKey, partition_size: usize) -> Option<Arc<str>>;
}

/// Where a candidate can be timed while others are on other partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screening {
    /// On a part of the partition that it is for.
    OnAPart,
    /// On partitions of the size that it is for.
    OnItsSize,
    /// On partitions of the size that it is for, where nothing else is left to do: it would hold others up. What is not
    /// tried so is left to the finals.
    Spare,
}

impl Screening {
    /// Whether it can be timed on a part of its partition, or else on one of its size.
    pub fn allows(self, is_part: bool) -> bool {
        match self {
            Self::OnAPart => true,
            Self::OnItsSize => !is_part,
            Self::Spare => false,
        }
    }
}

/// One way to compute an operator, as far as a search has to know it.
#[derive(Clone, Debug, PartialEq)]
pub struct CandidateDescription {
    /// Unique among the candidates of the operator, and the same on every partition.
    pub name: String,
    /// Where it lies in the space of its kernel family: one number per parameter, the family itself first. All candidates
    /// of an operator have equally many.
    pub parameters: Vec<i32>,
    /// What its time depends on, for a model that learns it; comparable between all operators of a platform.
    pub features: Vec<f32>,
    /// Where it can be timed beside others.
    pub screening: Screening,
    /// Identifies what has to be compiled for it, which candidates of other operators may need too; `None` where there is
    /// nothing to compile.
    pub code: Option<u64>,
}

/// An operator that can be computed in several ways on partitions of one size.
pub trait TunableOperator: Send + Sync {
    /// What it is.
    fn key(&self) -> &OperatorKey;

    /// The ways to compute it, all of them legal; the first is taken where nothing is known.
    fn candidates(&self) -> &[CandidateDescription];

    /// How often the model computes it.
    fn occurrences(&self) -> usize;

    /// Compiles what the candidate needs, unless it is compiled already. Any number of threads may do this at once.
    fn compile(&self, candidate: usize) -> Result<(), DeviceError>;

    /// The concrete operator, for the device that made it.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// What came of trying a candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum Trial {
    /// Its results are right, and this is how long it takes.
    Measured(Measurement),
    /// Its results differ from the reference by this share of their norm, which is more than its precision explains.
    Wrong {
        /// The norm of the difference, relative to that of the reference; not a number where results are none.
        error: f64,
    },
    /// It cannot be run here, and why.
    Failed(String),
}

/// How long a candidate takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// One run, as many of them say: the median, or less where neighbours disturb most of them.
    pub time: Duration,
    /// From the first to the third quartile, relative to the median.
    pub spread: f64,
    /// The time of a control kernel that ran in between, relative to what it takes when nothing else runs: 1 where
    /// nothing interfered.
    pub interference: f64,
}

/// A partition on which candidates are timed, one at a time.
pub trait Bench: Send {
    /// Checks the results of a candidate and times it, for about `effort`. Where the bench is smaller than the partition
    /// that the operator is for, a candidate that can be screened there is timed on the part of the work that falls to
    /// the bench. An error means that the bench itself is lost.
    fn try_candidate(
        &mut self,
        operator: &dyn TunableOperator,
        candidate: usize,
        effort: Duration,
    ) -> Result<Trial, DeviceError>;
}

/// A device whose kernels can be tuned.
pub trait TunableDevice: Send + Sync {
    /// What measurements on it hold for.
    fn platform(&self) -> Platform;

    /// How many cores or SMs all its units have together.
    fn size(&self) -> usize;

    /// How many cores or SMs a set of its units has.
    fn size_of(&self, units: &UnitSet) -> usize;

    /// Disjoint partitions of exactly `size` cores or SMs that can be in use at once, as many as there are.
    fn disjoint_partitions(&self, size: usize) -> Vec<UnitSet>;

    /// The least size of a partition on which candidates for partitions of `size` can be screened; `size` itself where
    /// a smaller one tells nothing.
    fn screening_size(&self, size: usize) -> usize;

    /// The operators of a model at these input shapes that have several candidates on partitions of `size`, equal ones
    /// once.
    fn operators(
        &self,
        model: &dyn LoadedModel,
        shapes: &[Vec<usize>],
        size: usize,
    ) -> Result<Vec<Arc<dyn TunableOperator>>, DeviceError>;

    /// A bench on a set of units. Benches on disjoint sets are used at once.
    fn bench(&self, units: &UnitSet) -> Result<Box<dyn Bench>, DeviceError>;

    /// A bench on units that others may own: all that it does, it does while they leave the units idle, like what runs on
    /// a [`background_partition`](crate::Device::background_partition). `None` where the device cannot do that.
    fn background_bench(&self, units: &UnitSet) -> Option<Result<Box<dyn Bench>, DeviceError>> {
        let _ = units;
        None
    }

    /// Prepares models from now on with the candidates that `choices` names.
    fn use_choices(&self, choices: Arc<dyn KernelChoices>);
}
