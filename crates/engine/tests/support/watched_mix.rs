//! A mix whose runs are counted, and whose results and times can be wrong on purpose.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use weft_device::{CompiledMix, DeviceError, Mix, MixSegment, MixStep, UnitSet};
use weft_ir::{Tensor, Value};

/// The mix that it wraps in all but that.
pub(crate) struct WatchedMix {
    pub(crate) mix: Box<dyn Mix>,
    /// Timings of steps and runs of schedules.
    pub(crate) runs: Arc<AtomicUsize>,
    /// The model whose results are one more than they should be.
    pub(crate) wrong: Option<usize>,
    /// How long runs of a schedule are said to take, in microseconds; `None` where that is told as it is.
    pub(crate) said_us: Option<fn(&[MixSegment]) -> f64>,
    /// Models can share launches, runs of which are said to take so long, in microseconds, or cannot be compiled where that is
    /// no number; every step is said to take [`STEP_US`] then.
    pub(crate) shared_us: Option<f64>,
    /// Batches can be computed in two chunks, every step of which is said to take so long by itself, in microseconds; those of
    /// batches at once are said to take [`STEP_US`] then.
    pub(crate) chunked_step_us: Option<f64>,
    /// What it takes more of the device's memory with each run.
    pub(crate) bytes_per_run: usize,
}

/// How long steps are said to take on any units.
pub(crate) const STEP_US: f64 = 10.0;

/// A schedule, and how long runs of it are said to take.
struct Said(CompiledMix, Option<f64>);

impl Mix for WatchedMix {
    fn units(&self) -> &[UnitSet] {
        self.mix.units()
    }

    fn at_once_name(&self) -> &'static str {
        self.mix.at_once_name()
    }

    fn memory_bytes(&self) -> usize {
        self.mix.memory_bytes() + self.runs.load(Ordering::Relaxed) * self.bytes_per_run
    }

    fn tolerance(&self) -> f64 {
        self.mix.tolerance()
    }

    fn can_fill(&self) -> bool {
        self.mix.can_fill()
    }

    fn timings(&self) -> usize {
        self.mix.timings()
    }

    fn step_count(&self, model: usize) -> usize {
        self.mix.step_count(model)
    }

    fn write_inputs(&mut self, model: usize, inputs: &[Value]) -> Result<(), DeviceError> {
        self.mix.write_inputs(model, inputs)
    }

    fn read_outputs(&self, model: usize) -> Result<Vec<Value>, DeviceError> {
        let outputs = self.mix.read_outputs(model)?;
        Ok(match self.wrong == Some(model) {
            true => outputs.iter().map(one_more).collect(),
            false => outputs,
        })
    }

    fn run_alone(&mut self, model: usize, inputs: &[Value]) -> Result<Vec<Value>, DeviceError> {
        self.mix.run_alone(model, inputs)
    }

    fn can_chunk(&self, model: usize, chunks: usize) -> bool {
        self.chunked_step_us.is_some() && chunks == 2 || self.mix.can_chunk(model, chunks)
    }

    fn joining_us(&self, model: usize) -> Vec<f64> {
        self.mix.joining_us(model)
    }

    fn time_steps_us(
        &mut self,
        model: usize,
        chunks: usize,
        units: &UnitSet,
    ) -> Result<Vec<f64>, DeviceError> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        if let Some(chunked_us) = self.chunked_step_us {
            let us = if chunks > 1 { chunked_us } else { STEP_US };
            return Ok(vec![us; self.mix.step_count(model)]);
        }
        let times_us = self.mix.time_steps_us(model, chunks, units)?;
        Ok(match self.shared_us {
            Some(_) => vec![STEP_US; times_us.len()],
            None => times_us,
        })
    }

    fn compile(&mut self, segments: &[MixSegment]) -> Result<CompiledMix, DeviceError> {
        let said_us = self.said_us.map(|said_us| said_us(segments));
        let at_once = |segment: &MixSegment| MixSegment { chunks: None, ..segment.clone() };
        let segments: Vec<MixSegment> = segments.iter().map(at_once).collect();
        Ok(CompiledMix::new(Said(self.mix.compile(&segments)?, said_us)))
    }

    fn can_share(&self, steps: &[MixStep]) -> bool {
        self.shared_us.is_some() && steps.len() > 1
    }

    /// Steps one after another, in the order of the sets.
    fn compile_shared(&mut self, sets: &[Vec<MixStep>]) -> Result<CompiledMix, DeviceError> {
        if self.shared_us.is_some_and(f64::is_nan) {
            return Err(DeviceError::Failed("too much for one launch".to_string()));
        }
        let units: UnitSet = self.mix.units().iter().flat_map(UnitSet::iter).collect();
        let segment = |&MixStep { model, step, .. }: &MixStep| MixSegment {
            model,
            steps: step..step + 1,
            chunks: None,
            units: units.clone(),
            is_filler: false,
            waits: Vec::new(),
        };
        let segments: Vec<MixSegment> = sets.iter().flatten().map(segment).collect();
        Ok(CompiledMix::new(Said(self.mix.compile(&segments)?, self.shared_us)))
    }

    fn at_once(&mut self) -> Result<CompiledMix, DeviceError> {
        Ok(CompiledMix::new(Said(self.mix.at_once()?, None)))
    }

    fn run_us(&mut self, schedule: &CompiledMix) -> Result<f64, DeviceError> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let Said(schedule, said_us) = schedule.of().expect("it was compiled here");
        let us = self.mix.run_us(schedule)?;
        Ok(said_us.unwrap_or(us))
    }
}

fn one_more(value: &Value) -> Value {
    let tensor = value.tensor().expect("an output is a tensor");
    let elements = tensor.to_f64s().expect("it has numbers").into_iter().map(|x| x as f32 + 1.0);
    let wrong = Tensor::from_vec(tensor.shape().to_vec(), elements.collect());
    Value::Tensor(wrong.expect("as many as before"))
}
