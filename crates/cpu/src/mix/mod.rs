//! Models of a mix that run together, cut into segments on cores of their own: a worker on each core goes from segment to
//! segment, and counters are what segments wait for.

mod at_once;
mod draft;
mod ends;
mod model;
mod schedule;
mod workers;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use weft_device::{CompiledMix, DeviceError, Mix, MixChunks, MixMember, MixSegment, UnitSet};
use weft_ir::Value;

use crate::PoolError;
use crate::device::CpuDevice;
use at_once::AtOnce;
use model::{Kernels, MixedModel, RunningModel};
use schedule::{Schedule, Stage};
use workers::Workers;

/// Timings of steps that a median is taken of.
const TIMINGS: usize = 5;

/// Models with memory of their own, any steps of which can run on any cores of the mix.
pub(crate) struct CpuMix {
    models: Vec<MixedModel>,
    cores: UnitSet,
    /// Each core by itself.
    units: Vec<UnitSet>,
    workers: Workers,
    /// What tells its schedules from those of others.
    token: Arc<()>,
}

/// A schedule that only has to be started.
struct CompiledCpuMix {
    way: Way,
    token: Arc<()>,
}

enum Way {
    Scheduled(Schedule),
    AtOnce(AtOnce),
}

/// An instant of a run that is observed.
#[derive(Clone, Copy)]
enum Mark {
    SegmentBegan,
    /// A step of the plan.
    StepEnded(usize),
}

impl Way {
    fn runs(&self, model: usize) -> bool {
        match self {
            Self::Scheduled(schedule) => schedule.runs(model),
            Self::AtOnce(_) => true,
        }
    }

    fn parts(&self, model: usize) -> usize {
        match self {
            Self::Scheduled(schedule) => schedule.parts(model),
            Self::AtOnce(_) => 1,
        }
    }
}

impl CpuMix {
    /// Models at fixed shapes, with the kernels that each has on all of these cores.
    pub(crate) fn new(
        device: &CpuDevice,
        models: &[MixMember],
        cores: &UnitSet,
    ) -> Result<Self, DeviceError> {
        device.check_units(cores)?;
        let (isa, choices) = (device.isa(), device.choices.current());
        let kernels = Kernels { isa, workers: cores.len(), choices };
        let models = models.iter().map(|member| MixedModel::new(member, &kernels));
        let models = models.collect::<Result<_, DeviceError>>()?;
        let workers = Workers::new(cores.clone(), isa);
        let units = cores.iter().map(|core| UnitSet::from_iter([core])).collect();
        Ok(Self { models, cores: cores.clone(), units, workers, token: Arc::new(()) })
    }

    /// The first worker of each segment calls `note` when it begins, and after each step of its model's plan; of parts of a
    /// batch, those of the first.
    fn run_observed(
        &mut self,
        schedule: &CompiledMix,
        note: impl Fn(Mark) + Sync,
    ) -> Result<f64, DeviceError> {
        let own =
            schedule.of().filter(|own: &&CompiledCpuMix| Arc::ptr_eq(&self.token, &own.token));
        let Some(CompiledCpuMix { way, .. }) = own else {
            return Err(DeviceError::Failed("the schedule is of another mix".to_string()));
        };
        let pool = self.workers.begin().map_err(failed)?;
        let mut models: Vec<Option<RunningModel<'_>>> = Vec::with_capacity(self.models.len());
        for (place, model) in self.models.iter_mut().enumerate() {
            models.push(way.runs(place).then(|| model.begin(way.parts(place))).transpose()?);
        }
        let start = Instant::now();
        match way {
            Way::Scheduled(schedule) => schedule.run(pool, |segment, worker| {
                let model = models[segment.model].as_ref().expect("its schedule runs it");
                let is_noted = segment.part.is_none_or(|part| part.number == 0);
                let note = |mark| {
                    if is_noted {
                        note(mark)
                    }
                };
                if worker.index() == 0 {
                    note(Mark::SegmentBegan);
                }
                let steps = segment.steps.clone();
                model.run(segment.part, steps, worker, |step| note(Mark::StepEnded(step)));
            }),
            Way::AtOnce(at_once) => at_once.run(&models),
        }
        .map_err(failed)?;
        let us = start.elapsed().as_secs_f64() * 1e6;
        models.into_iter().flatten().try_for_each(RunningModel::end)?;
        Ok(us)
    }

    fn compiled(&self, way: Way) -> CompiledMix {
        CompiledMix::new(CompiledCpuMix { way, token: self.token.clone() })
    }
}

impl Mix for CpuMix {
    fn units(&self) -> &[UnitSet] {
        &self.units
    }

    fn at_once_name(&self) -> &'static str {
        "free-running threads"
    }

    /// It grows where batches are computed in chunks.
    fn memory_bytes(&self) -> usize {
        self.models.iter().map(MixedModel::memory_bytes).sum()
    }

    /// Kernels are the same on any number of cores, and add in the same order.
    fn tolerance(&self) -> f64 {
        0.0
    }

    /// A core runs one thing at a time.
    fn can_fill(&self) -> bool {
        false
    }

    fn timings(&self) -> usize {
        TIMINGS
    }

    /// What runs chunk by chunk is one step.
    fn step_count(&self, model: usize) -> usize {
        self.models[model].step_count()
    }

    fn write_inputs(&mut self, model: usize, inputs: &[Value]) -> Result<(), DeviceError> {
        self.models[model].write_inputs(inputs)
    }

    fn read_outputs(&self, model: usize) -> Result<Vec<Value>, DeviceError> {
        self.models[model].read_outputs()
    }

    /// In other memory: what the mix has read and computed stays.
    fn run_alone(&mut self, model: usize, inputs: &[Value]) -> Result<Vec<Value>, DeviceError> {
        self.models[model].run_alone(self.workers.begin().map_err(failed)?, inputs)
    }

    fn can_chunk(&self, model: usize, chunks: usize) -> bool {
        self.models[model].can_chunk(chunks)
    }

    fn joining_us(&self, model: usize) -> Vec<f64> {
        self.models[model].joining_us()
    }

    /// Of one run, after one that warms up; the other chunks follow the one that is timed.
    fn time_steps_us(
        &mut self,
        model: usize,
        chunks: usize,
        units: &UnitSet,
    ) -> Result<Vec<f64>, DeviceError> {
        let steps = 0..self.step_count(model);
        let mut times_us = vec![0.0; steps.len()];
        let in_chunks =
            || MixChunks { count: chunks, until: steps.end, shares: vec![units.clone()] };
        let chunks = (chunks > 1).then(in_chunks);
        let (units, is_filler, waits) = (units.clone(), false, Vec::new());
        let segment = MixSegment { model, steps, chunks, units, is_filler, waits };
        let schedule = self.compile(&[segment])?;
        self.run_us(&schedule)?;
        let marks = Mutex::new(Vec::new());
        self.run_observed(&schedule, |mark| {
            marks.lock().unwrap_or_else(PoisonError::into_inner).push((mark, Instant::now()));
        })?;
        let marks = marks.into_inner().unwrap_or_else(PoisonError::into_inner);
        for pair in marks.windows(2) {
            let [(_, begin), (Mark::StepEnded(step), end)] = pair else { continue };
            let took = end.duration_since(*begin);
            times_us[self.models[model].group_of(*step)] += took.as_secs_f64() * 1e6;
        }
        Ok(times_us)
    }

    fn compile(&mut self, segments: &[MixSegment]) -> Result<CompiledMix, DeviceError> {
        let step_counts: Vec<usize> = self.models.iter().map(MixedModel::step_count).collect();
        let stage = Stage { step_counts: &step_counts, cores: &self.cores };
        let schedule = Schedule::new(segments, &stage)?;
        for MixSegment { model, chunks, .. } in segments {
            if let Some(MixChunks { count, until, .. }) = chunks {
                self.models[*model].check_joining(*until)?;
                self.models[*model].prepare_parts(*count)?;
            }
        }
        Ok(self.compiled(Way::Scheduled(schedule)))
    }

    /// Each with workers of its own on every core.
    fn at_once(&mut self) -> Result<CompiledMix, DeviceError> {
        let at_once = AtOnce::new(self.models.len(), &self.cores, self.workers.isa());
        Ok(self.compiled(Way::AtOnce(at_once.map_err(failed)?)))
    }

    fn run_us(&mut self, schedule: &CompiledMix) -> Result<f64, DeviceError> {
        self.run_observed(schedule, |_| {})
    }
}

fn failed(error: PoolError) -> DeviceError {
    DeviceError::Failed(error.to_string())
}
