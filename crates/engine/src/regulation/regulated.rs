//! A mix that runs by what was found for it.

use weft_device::{CompiledMix, DeviceError};
use weft_ir::Value;
use weft_scheduler::regulate::{Lockstep, Mix, Stages};

/// A mix with its schedule, or with launches that its models share where these are faster.
pub struct RegulatedMix {
    // What is run is dropped before the memory that it uses.
    pub(super) compiled: CompiledMix,
    pub(super) mix: Box<dyn weft_device::Mix>,
    pub(super) models: usize,
    pub(super) timed: Mix,
    pub(super) stages: Stages,
    pub(super) is_known: bool,
    pub(super) lockstep: Option<Lockstep>,
    pub(super) latency_us: f64,
    pub(super) schedule_us: f64,
    pub(super) in_turns_us: f64,
}

impl RegulatedMix {
    /// Runs all models on their inputs, one list of values for each model, and waits for the outputs of each.
    pub fn run(&mut self, inputs: &[Vec<Value>]) -> Result<Vec<Vec<Value>>, DeviceError> {
        if inputs.len() != self.models {
            let (models, given) = (self.models, inputs.len());
            let problem = format!("a mix of {models} models was given inputs for {given}");
            return Err(DeviceError::Failed(problem));
        }
        for (model, inputs) in inputs.iter().enumerate() {
            self.mix.write_inputs(model, inputs)?;
        }
        self.mix.run_us(&self.compiled)?;
        (0..self.models).map(|model| self.mix.read_outputs(model)).collect()
    }

    /// How long a run takes, in microseconds, without copies of inputs and outputs: a median of rounds.
    pub fn latency_us(&self) -> f64 {
        self.latency_us
    }

    /// How long a run by its schedule takes, which is what it is run by unless its models share launches.
    pub fn schedule_us(&self) -> f64 {
        self.schedule_us
    }

    /// The launches that its models share, where they are what it is run by: they were faster than the schedule.
    pub fn lockstep(&self) -> Option<&Lockstep> {
        self.lockstep.as_ref()
    }

    /// How long its models took one after another on all units in the same rounds, in microseconds.
    pub fn in_turns_us(&self) -> f64 {
        self.in_turns_us
    }

    /// What its schedule follows from, to be kept.
    pub fn stages(&self) -> &Stages {
        &self.stages
    }

    /// The mix as it was timed.
    pub fn timed(&self) -> &Mix {
        &self.timed
    }

    /// The stages were known before the search, which found nothing faster.
    pub fn is_known(&self) -> bool {
        self.is_known
    }
}
