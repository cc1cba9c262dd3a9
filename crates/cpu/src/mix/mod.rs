//! Models of a mix that run together, cut into segments on cores of their own: a worker on each core goes from segment to
//! segment, and counters are what segments wait for.

mod at_once;
mod ends;
mod model;
mod schedule;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use weft_device::{CompiledMix, DeviceError, Mix, MixMember, MixSegment, UnitSet};
use weft_ir::Value;

use crate::device::CpuDevice;
use crate::model::CpuModel;
use crate::plan::{build, let_go};
use crate::{Pool, PoolError};
use at_once::AtOnce;
use model::{MixedModel, RunningModel};
use schedule::{Schedule, Stage};

/// Timings of steps that a median is taken of.
const TIMINGS: usize = 5;

/// Models with memory of their own, any steps of which can run on any cores of the mix.
pub(crate) struct CpuMix {
    models: Vec<MixedModel>,
    cores: UnitSet,
    /// Each core by itself.
    units: Vec<UnitSet>,
    pool: Pool,
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
}

impl CpuMix {
    /// Models at fixed shapes, with the kernels that each has on all of these cores.
    pub(crate) fn new(
        device: &CpuDevice,
        models: &[MixMember],
        cores: &UnitSet,
    ) -> Result<Self, DeviceError> {
        device.check_units(cores)?;
        let choices = device.choices.current();
        let mixed = |MixMember { model, shapes }: &MixMember| {
            let model = CpuModel::of(&**model)?;
            let graph = model.specialise(shapes)?;
            model.graph.values().iter().filter_map(|of| of.constant.as_ref()).for_each(let_go);
            let (isa, workers) = (device.isa(), cores.len());
            let plan = build(graph, &model.weights, isa, workers, choices.as_deref());
            MixedModel::new(&model.name, plan)
        };
        let models = models.iter().map(mixed).collect::<Result<_, DeviceError>>()?;
        let pool = Pool::new(cores.as_slice(), device.isa()).map_err(failed)?;
        let units = cores.iter().map(|core| UnitSet::from_iter([core])).collect();
        Ok(Self { models, cores: cores.clone(), units, pool, token: Arc::new(()) })
    }

    /// The first worker of each segment calls `note` when it begins, and after each step of its model's plan.
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
        let mut models: Vec<Option<RunningModel<'_>>> = Vec::with_capacity(self.models.len());
        for (place, model) in self.models.iter_mut().enumerate() {
            models.push(way.runs(place).then(|| model.begin()).transpose()?);
        }
        let start = Instant::now();
        match way {
            Way::Scheduled(schedule) => schedule.run(&self.pool, |segment, worker| {
                let model = models[segment.model].as_ref().expect("its schedule runs it");
                if worker.index() == 0 {
                    note(Mark::SegmentBegan);
                }
                model.run(segment.steps.clone(), worker, |step| note(Mark::StepEnded(step)));
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
        self.models[model].run_alone(&self.pool, inputs)
    }

    fn can_chunk(&self, _model: usize, chunks: usize) -> bool {
        chunks == 1
    }

    fn carried_bytes(&self, _model: usize) -> Vec<usize> {
        Vec::new()
    }

    /// Of one run, after one that warms up.
    fn time_steps_us(
        &mut self,
        model: usize,
        chunks: usize,
        units: &UnitSet,
    ) -> Result<Vec<f64>, DeviceError> {
        if chunks != 1 {
            let problem = format!("its batch is not computed in {chunks} chunks");
            return Err(DeviceError::Failed(problem).at(self.models[model].name(), None));
        }
        let steps = 0..self.step_count(model);
        let mut times_us = vec![0.0; steps.len()];
        let (units, is_filler) = (units.clone(), false);
        let segment =
            MixSegment { model, steps, chunks: None, units, is_filler, waits: Vec::new() };
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
        Ok(self.compiled(Way::Scheduled(Schedule::new(segments, &stage)?)))
    }

    /// Each with workers of its own on every core.
    fn at_once(&mut self) -> Result<CompiledMix, DeviceError> {
        let at_once = AtOnce::new(self.models.len(), &self.cores, self.pool.isa());
        Ok(self.compiled(Way::AtOnce(at_once.map_err(failed)?)))
    }

    fn run_us(&mut self, schedule: &CompiledMix) -> Result<f64, DeviceError> {
        self.run_observed(schedule, |_| {})
    }
}

fn failed(error: PoolError) -> DeviceError {
    DeviceError::Failed(error.to_string())
}
