//! What every accelerator offers: units, partitions of them, models loaded onto a device, and executables.

mod buckets;
mod error;
mod group;
mod inputs;
mod mix;
mod rows;
mod tuning;
mod unit_set;
mod urgency;

use std::sync::Arc;
use std::time::Duration;

use weft_ir::{Applied, Graph, Value};

pub use buckets::{Buckets, MAX_BUCKETS, bucket_sizes};
pub use error::DeviceError;
pub use group::{Group, GroupEntry, GroupMember, NewGroup};
pub use inputs::check_inputs;
pub use mix::{CompiledMix, MIX_CHUNKS, Mix, MixChunks, MixMember, MixSegment, MixStep};
pub use tuning::{
    Bench, CandidateDescription, KernelChoices, Measurement, OperatorKey, Platform, Screening,
    Trial, TunableDevice, TunableOperator,
};
pub use unit_set::UnitSet;
pub use urgency::Urgency;

/// One physical accelerator.
pub trait Device: Send + Sync {
    /// What the device is, for people.
    fn description(&self) -> DeviceDescription;

    /// Loads a model: its weights become resident once, whatever the number of partitions it later runs on.
    fn load(&self, name: &str, graph: &Graph) -> Result<Arc<dyn LoadedModel>, DeviceError>;

    /// A partition over any non-empty set of units. Partitions over disjoint sets do not disturb each other.
    fn partition(&self, units: &UnitSet) -> Result<Arc<dyn Partition>, DeviceError>;

    /// Whether [`Executable::interrupt`] runs at once while another executable of the same partition runs; otherwise it
    /// waits its turn.
    fn can_interrupt(&self) -> bool {
        false
    }

    /// Whether its partitions make [groups](Partition::prepare_group).
    fn has_groups(&self) -> bool {
        false
    }

    /// A partition over units that others may own: it runs while they leave the units idle, and lets them go first at once.
    /// `None` where the device cannot do that.
    fn background_partition(
        &self,
        units: &UnitSet,
    ) -> Option<Result<Arc<dyn Partition>, DeviceError>> {
        let _ = units;
        None
    }

    /// Models that share some units by schedules. `None` where the device has no mixes.
    fn mix(
        &self,
        models: &[MixMember],
        units: &UnitSet,
    ) -> Option<Result<Box<dyn Mix>, DeviceError>> {
        let _ = (models, units);
        None
    }
}

/// A device in words and numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceDescription {
    /// The kind of device: `cpu`, `cuda`.
    pub kind: &'static str,
    /// The product name.
    pub name: String,
    /// How many units it has.
    pub unit_count: usize,
    /// What one unit is, in words.
    pub unit: String,
    /// What its kernels are compiled for.
    pub instruction_set: String,
    /// Memory that models can use.
    pub memory_bytes: Option<u64>,
    /// Measured or known peak of one unit in f32.
    pub peak_gflops_per_unit: Option<f64>,
}

/// A set of units that runs one batch at a time, and where it can be interrupted, one more meanwhile.
pub trait Partition: Send + Sync {
    /// The units it owns.
    fn units(&self) -> &UnitSet;

    /// Prepares a loaded model for inputs of exactly these shapes, one per required input, on this partition.
    fn prepare(
        &self,
        model: &dyn LoadedModel,
        shapes: &[Vec<usize>],
    ) -> Result<Box<dyn Executable>, DeviceError>;

    /// A group for up to so many requests at once, for inputs of exactly these shapes, with a model as its first member.
    /// `None` where the device has no groups.
    fn prepare_group(
        &self,
        model: &dyn LoadedModel,
        shapes: &[Vec<usize>],
        entries: usize,
    ) -> Option<Result<NewGroup, DeviceError>> {
        let _ = (model, shapes, entries);
        None
    }
}

/// A model's weights resident on a device.
pub trait LoadedModel: Send + Sync {
    /// The name it was loaded under.
    fn name(&self) -> &str;

    /// The graph it was loaded from, with weights that the device has packed left out.
    fn graph(&self) -> &Graph;

    /// The concrete model, for the device that made it.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// A model at fixed shapes on one partition.
pub trait Executable: Send + Sync {
    /// Runs it on one value per required input and waits for the outputs.
    fn run(&self, inputs: &[Value]) -> Result<Vec<Value>, DeviceError>;

    /// Runs it like [`Executable::run`], at once: what runs on the partition pauses meanwhile and goes on afterwards, with
    /// the results that it would have had. One interruption runs at a time, a second one waits for the first. Where the
    /// partition cannot be interrupted, it waits its turn.
    fn interrupt(&self, inputs: &[Value]) -> Result<Vec<Value>, DeviceError> {
        self.run(inputs)
    }

    /// Runs it like [`Executable::run`], and says how long each step of the report took.
    fn time_steps(&self, inputs: &[Value]) -> Result<Vec<Duration>, DeviceError>;

    /// What was made of the model on the way here.
    fn report(&self) -> &ExecutionReport;
}

/// What a device made of a model at fixed shapes.
#[derive(Clone, Debug, Default)]
pub struct ExecutionReport {
    /// Size of the arena that activations share.
    pub arena_bytes: usize,
    /// Size of the weights in the form the kernels read.
    pub weight_bytes: usize,
    /// Floating-point operations of one run.
    pub flops: u64,
    /// The rewrites that were applied.
    pub rewrites: Vec<Applied>,
    /// The steps in order.
    pub steps: Vec<StepReport>,
}

/// One step of an execution plan.
#[derive(Clone, Debug)]
pub struct StepReport {
    /// The node it computes.
    pub node: String,
    /// Its operator.
    pub operator: String,
    /// The kernel that computes it.
    pub kernel: String,
    /// Floating-point operations of one run.
    pub flops: u64,
}
