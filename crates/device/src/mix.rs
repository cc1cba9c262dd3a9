//! Models that run together again and again, cut into segments on units of their own.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use weft_ir::Value;

use crate::{DeviceError, LoadedModel, UnitSet};

/// A model of a mix.
#[derive(Clone)]
pub struct MixMember {
    /// Loaded onto the device of the mix.
    pub model: Arc<dyn LoadedModel>,
    /// Of its required inputs, in order.
    pub shapes: Vec<Vec<usize>>,
}

/// Consecutive steps of one model of a mix on some units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixSegment {
    /// Which of the mix's models.
    pub model: usize,
    /// Which of its steps.
    pub steps: Range<usize>,
    /// Where its batch is not computed at once. All segments of a model have as many chunks, until the same step.
    pub chunks: Option<MixChunks>,
    /// What it runs on.
    pub units: UnitSet,
    /// It lets others that have its units go first.
    pub is_filler: bool,
    /// The segments before it, by their places, that it begins after. It always begins after the one before it of its model.
    /// Where models [cannot fill](Mix::can_fill), a unit takes part in it after what stands before it on that unit.
    pub waits: Vec<usize>,
}

/// The numbers of chunks that batches are computed in, where they can be; a device need not be ready for others.
pub const MIX_CHUNKS: [usize; 3] = [2, 4, 8];

/// Parts of a model's batch, each of which steps compute by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixChunks {
    /// How many, of [`MIX_CHUNKS`]; the batch is a multiple of it.
    pub count: usize,
    /// Steps before this one are computed in chunks, and those from it on at once.
    pub until: usize,
    /// Units of those that run at the same time; with fewer shares than chunks, some wait for others.
    pub shares: Vec<UnitSet>,
}

/// One step of one model of a mix, on all units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MixStep {
    /// Which of the mix's models.
    pub model: usize,
    /// Which of its steps.
    pub step: usize,
    /// It is computed as it would be on so many units of the mix, where that makes a difference.
    pub units: usize,
}

/// A schedule that only has to be started, for the mix that made it.
pub struct CompiledMix(Box<dyn Any + Send + Sync>);

impl CompiledMix {
    /// What a device makes of a schedule.
    pub fn new(compiled: impl Any + Send + Sync) -> Self {
        Self(Box::new(compiled))
    }

    /// What it was made of, for the device that made it.
    pub fn of<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

/// Models at fixed shapes with memory of their own, any steps of which run on any units of the mix. One schedule runs at a time.
pub trait Mix: Send {
    /// What each unit that schedules share out is on the device.
    fn units(&self) -> &[UnitSet];

    /// What it is called here that all models run at once on all units.
    fn at_once_name(&self) -> &'static str;

    /// What it takes of the device's memory at present, besides the weights of its models. It may grow as steps are timed and
    /// schedules compiled.
    fn memory_bytes(&self) -> usize;

    /// How far results may be from those of a model alone, relative to them.
    fn tolerance(&self) -> f64;

    /// Whether a model can have units beside others, and leave them as much as they want.
    fn can_fill(&self) -> bool;

    /// How often steps are to be timed so that medians of [`Mix::time_steps_us`] count.
    fn timings(&self) -> usize;

    /// How many steps a model has.
    fn step_count(&self, model: usize) -> usize;

    /// Sets what a model reads from now on: one value per required input.
    fn write_inputs(&mut self, model: usize, inputs: &[Value]) -> Result<(), DeviceError>;

    /// The outputs of a model's last run.
    fn read_outputs(&self, model: usize) -> Result<Vec<Value>, DeviceError>;

    /// The outputs of a model that runs alone on all units of the mix. What it reads in the mix, and what it has last
    /// computed there, may be these inputs and outputs from then on.
    fn run_alone(&mut self, model: usize, inputs: &[Value]) -> Result<Vec<Value>, DeviceError>;

    /// Whether a model's batch can be computed in so many chunks.
    fn can_chunk(&self, model: usize, chunks: usize) -> bool;

    /// For each of a model's steps, about how long it takes to put chunks together that end before it, in microseconds, whether or
    /// not its batch can be computed in chunks.
    fn joining_us(&self, model: usize) -> Vec<f64>;

    /// How long each step of a model takes on some units, in microseconds, for one of so many chunks of its batch, when
    /// nothing else runs. Its inputs were written before.
    fn time_steps_us(
        &mut self,
        model: usize,
        chunks: usize,
        units: &UnitSet,
    ) -> Result<Vec<f64>, DeviceError>;

    /// Checks a schedule, and makes what it takes to run it.
    fn compile(&mut self, segments: &[MixSegment]) -> Result<CompiledMix, DeviceError>;

    /// Whether steps of different models can share a launch. None can where devices have no such launches.
    fn can_share(&self, _steps: &[MixStep]) -> bool {
        false
    }

    /// Makes what it takes to run all models on all units in lockstep: one set of steps of different models after another, where
    /// those of a set begin in their order and share launches as far as they can.
    fn compile_shared(&mut self, _sets: &[Vec<MixStep>]) -> Result<CompiledMix, DeviceError> {
        Err(DeviceError::Failed("models do not share launches on this device".to_string()))
    }

    /// All models at once on all units, as hardware or operating system like.
    fn at_once(&mut self) -> Result<CompiledMix, DeviceError>;

    /// Runs a schedule that was compiled here, and says how long it took as the host sees it, in microseconds.
    fn run_us(&mut self, schedule: &CompiledMix) -> Result<f64, DeviceError>;
}
