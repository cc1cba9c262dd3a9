//! A partition of SMs: its stream, and the arena that its models share, since one batch runs there at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_device::{
    DeviceError, Executable, GroupMember, KernelChoices, LoadedModel, NewGroup, Partition, UnitSet,
};

use crate::Chip;
use crate::choosing::{Choosing, LibraryAccess};
use crate::driver::{GrowableBuffer, PartitionContext, Stream};
use crate::executable::CudaExecutable;
use crate::gpu::Gpu;
use crate::group::CudaGroup;
use crate::known_plans::PlanKey;
use crate::library_call::LibrarySet;
use crate::measure::MeasuringChooser;
use crate::model::CudaModel;
use crate::options::Choice;
use crate::plan::chooser::{Chooser, KnownCandidate, NamedCandidate};
use crate::plan::target::Target;
use crate::plan::{ExecutionPlan, build};

/// What runs on one partition.
pub(crate) struct Lane {
    pub(crate) partition: Arc<PartitionContext>,
    /// Where it is not the partition's.
    own_stream: Option<Stream>,
    /// Activations of whatever runs; who holds it has the partition's turn.
    arena: Mutex<GrowableBuffer>,
}

impl Lane {
    pub(crate) fn new(partition: Arc<PartitionContext>) -> Result<Self, DeviceError> {
        let context = partition.context();
        let arena = GrowableBuffer::reserve(context, context.memory_bytes() as usize)?;
        Ok(Self { partition, own_stream: None, arena: Mutex::new(arena) })
    }

    /// Another lane of the same partition, whose batches run beside those of this one.
    fn beside(&self) -> Result<Self, DeviceError> {
        let own_stream = Some(self.stream().beside()?);
        Ok(Self { own_stream, ..Self::new(self.partition.clone())? })
    }

    /// The stream that batches run in.
    pub(crate) fn stream(&self) -> &Stream {
        self.own_stream.as_ref().unwrap_or(self.partition.stream())
    }

    /// Waits for the partition's turn.
    pub(crate) fn take_turn(&self) -> MutexGuard<'_, GrowableBuffer> {
        self.arena.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A set of SMs with a stream of its own.
pub struct CudaPartition {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) lane: Arc<Lane>,
}

impl CudaPartition {
    /// The same SMs once more, with a stream and an arena of their own: what runs there shares the SMs with what runs here as
    /// the hardware likes.
    pub fn beside(&self) -> Result<Self, DeviceError> {
        Ok(Self { gpu: self.gpu.clone(), lane: Arc::new(self.lane.beside()?) })
    }

    /// How many SMs it has.
    pub fn sm_count(&self) -> u32 {
        self.lane.partition.sm_count()
    }

    /// The context and the stream that its work runs in.
    pub fn context(&self) -> &Arc<PartitionContext> {
        &self.lane.partition
    }

    /// Prepares a model as [`Partition::prepare`] does, with all that the executable offers beyond [`Executable`].
    pub fn prepare_model(
        &self,
        model: &CudaModel,
        shapes: &[Vec<usize>],
    ) -> Result<CudaExecutable, DeviceError> {
        if !Arc::ptr_eq(&self.gpu, &model.gpu) {
            return Err(DeviceError::ForeignModel { model: model.name.clone() });
        }
        let prepared = self
            .plan(model, shapes)
            .and_then(|plan| CudaExecutable::new(&model.name, plan, &self.gpu, self.lane.clone()));
        model.tidy(prepared.is_err());
        prepared
    }

    /// A group as [`Partition::prepare_group`] makes it, with all that it offers beyond [`weft_device::Group`].
    pub fn group_of(
        &self,
        model: &CudaModel,
        shapes: &[Vec<usize>],
        entries: usize,
    ) -> Result<(CudaGroup, GroupMember), DeviceError> {
        let made = CudaGroup::new(self.gpu.clone(), self.lane.clone(), model, shapes, entries);
        model.tidy(made.is_err());
        made
    }

    pub(crate) fn plan(
        &self,
        model: &CudaModel,
        shapes: &[Vec<usize>],
    ) -> Result<ExecutionPlan, DeviceError> {
        let known = self.gpu.known_choices();
        let key = PlanKey {
            shapes: shapes.to_vec(),
            sm_count: self.sm_count(),
            entries: None,
            choices: known.version,
        };
        let make = || self.new_plan(model, shapes, known.choices);
        Ok(model.plans.get_or_make(key, make)?.plan.clone())
    }

    fn new_plan(
        &self,
        model: &CudaModel,
        shapes: &[Vec<usize>],
        known: Option<Arc<dyn KernelChoices>>,
    ) -> Result<ExecutionPlan, DeviceError> {
        let graph = model.specialised(shapes)?;
        let choosing = match (self.gpu.options.choice, &known) {
            (Choice::Estimated, Some(choices)) => {
                Choosing::Known { choices: &**choices, sm_count: self.sm_count() }
            }
            _ => Choosing::Ranked,
        };
        let measuring = MeasuringChooser { gpu: &self.gpu, lane: &self.lane, entries: None };
        let (named, tuned);
        let chooser: &dyn Chooser = match self.gpu.options.choice {
            Choice::Estimated => {
                tuned = KnownCandidate(choosing);
                &tuned
            }
            Choice::Measured => &measuring,
            Choice::Named(name) => {
                named = NamedCandidate(name);
                &named
            }
        };
        let open = || self.gpu.libraries.available(&self.gpu.context);
        let libraries = match self.gpu.options.choice {
            _ if !self.gpu.options.uses_libraries => LibrarySet::default().into(),
            // Nothing is known of how fast they are, so that their candidates would not be taken.
            Choice::Estimated if known.is_none() => LibrarySet::default().into(),
            Choice::Estimated => LibraryAccess::AsWanted(&open),
            Choice::Measured | Choice::Named(_) => open().into(),
        };
        let target = Target {
            model: &model.name,
            weights: &model.weights,
            chip: self.chip(),
            precision: model.precision,
            chooser,
            libraries,
            choosing,
        };
        let plan = build(&graph, &target);
        model.weights.forget_hashed();
        // What is on the device need not be held of the model's file.
        let constants = model.graph.values().iter().filter_map(|value| value.constant.as_ref());
        for bytes in constants.filter_map(|tensor| tensor.source_bytes()) {
            weft_mapped_file::let_go(bytes);
        }
        plan
    }

    fn chip(&self) -> Chip {
        self.gpu.context.chip().with_sms(self.sm_count())
    }
}

impl Partition for CudaPartition {
    fn units(&self) -> &UnitSet {
        self.lane.partition.units()
    }

    fn prepare(
        &self,
        model: &dyn LoadedModel,
        shapes: &[Vec<usize>],
    ) -> Result<Box<dyn Executable>, DeviceError> {
        Ok(Box::new(self.prepare_model(CudaModel::of(model, &self.gpu)?, shapes)?))
    }

    fn prepare_group(
        &self,
        model: &dyn LoadedModel,
        shapes: &[Vec<usize>],
        entries: usize,
    ) -> Option<Result<NewGroup, DeviceError>> {
        let group = CudaModel::of(model, &self.gpu)
            .and_then(|model| self.group_of(model, shapes, entries))
            .map(|(group, first)| NewGroup { group: Box::new(group), first });
        Some(group)
    }
}
