//! Models of a mix that run together, cut into segments on partitions of their own: one graph, whose branches lie in several
//! partitions and whose edges are what segments wait for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use weft_device::{DeviceError, Executable, UnitSet};
use weft_ir::Value;

use crate::bound_work::BoundWork;
use crate::device::CudaDevice;
use crate::driver::{CudaError, Event, GraphExec, Stream, capture};
use crate::executable::CudaExecutable;
use crate::io_memory::IoMemory;
use crate::launch::DeviceWeights;
use crate::model::CudaModel;
use crate::partition::CudaPartition;
use crate::plan::place::Bases;
use crate::preparation::{Preparation, ReadyStage};
use crate::timing::median_us;

/// Consecutive steps of one model of a mix on some units.
#[derive(Clone, Debug)]
pub struct CudaSegment {
    /// Which of the mix's models.
    pub model: usize,
    /// Which of its steps.
    pub steps: Range<usize>,
    /// What it runs on.
    pub units: UnitSet,
    /// The segments before it, by their places, that it begins after. It always begins after the one before it of its model.
    pub waits: Vec<usize>,
}

/// Models with memory of their own, any steps of which can run on any partition.
pub struct CudaMix {
    // What was recorded is dropped before what it was recorded from.
    models: Vec<MixedModel>,
    partitions: HashMap<UnitSet, Arc<CudaPartition>>,
    device: Arc<CudaDevice>,
    stream: Stream,
    /// What tells its schedules from those of others.
    token: Arc<()>,
}

/// One model.
struct MixedModel {
    /// By numbers of SMs. They are dropped before the memory that they use.
    plans: HashMap<u32, BoundPlan>,
    /// On all SMs; its memory is that of all plans.
    executable: CudaExecutable,
    model: Arc<CudaModel>,
    shapes: Vec<Vec<usize>>,
}

/// A plan for a number of SMs, on the model's memory.
struct BoundPlan {
    steps: Vec<Vec<BoundWork>>,
    /// Counters are the plan's own; inputs and outputs of it are not used.
    _memory: IoMemory,
    _weights: Vec<Arc<DeviceWeights>>,
}

/// A schedule that only has to be started.
pub struct CompiledMix {
    graph: GraphExec,
    token: Arc<()>,
}

impl CudaMix {
    /// Models at fixed shapes, each of which the device computes by itself.
    pub fn new(
        device: &Arc<CudaDevice>,
        models: Vec<(Arc<CudaModel>, Vec<Vec<usize>>)>,
    ) -> Result<Self, DeviceError> {
        let all = device.layout().all();
        let whole = device.cuda_partition(&all)?;
        let mixed = |(model, shapes): (Arc<CudaModel>, Vec<Vec<usize>>)| {
            let executable = whole.beside()?.prepare_model(&model, &shapes)?;
            Ok(MixedModel { plans: HashMap::new(), executable, model, shapes })
        };
        let models = models.into_iter().map(mixed).collect::<Result<Vec<_>, DeviceError>>()?;
        let stream = whole.lane.stream().beside()?;
        let partitions = HashMap::from([(all, whole)]);
        Ok(Self { models, partitions, device: device.clone(), stream, token: Arc::new(()) })
    }

    /// Copies inputs of a model to the device.
    pub fn write_inputs(&self, model: usize, inputs: &[Value]) -> Result<(), DeviceError> {
        let executable = &self.models[model].executable;
        executable.write_inputs(inputs)?;
        // Segments run in streams of their own.
        Ok(executable.stream().synchronize()?)
    }

    /// The outputs of a model's last run, which has ended.
    pub fn read_outputs(&self, model: usize) -> Result<Vec<Value>, DeviceError> {
        self.models[model].executable.read_outputs()
    }

    /// The outputs of a model that runs alone on all SMs, as [`Executable::run`] gives them.
    pub fn run_alone(&self, model: usize, inputs: &[Value]) -> Result<Vec<Value>, DeviceError> {
        self.models[model].executable.run(inputs)
    }

    /// What a model's steps are.
    pub fn report(&self, model: usize) -> &weft_device::ExecutionReport {
        self.models[model].executable.report()
    }

    /// How long each step of a model takes by itself on some units, in microseconds. Its inputs were written before.
    pub fn time_steps_us(
        &mut self,
        model: usize,
        units: &UnitSet,
    ) -> Result<Vec<f64>, DeviceError> {
        let partition = self.partition(units)?;
        self.prepare_exactly(model, &partition)?;
        let mixed = &self.models[model];
        let plan = &mixed.plans[&partition.sm_count()];
        let _turn = partition.lane.take_turn();
        let time = |work: &Vec<BoundWork>| {
            // SAFETY: the memory is the model's, which nothing else runs on while `self` is borrowed.
            unsafe { median_us(partition.lane.stream(), work) }.map_err(|error| mixed.failed(error))
        };
        plan.steps.iter().map(time).collect()
    }

    /// Records a schedule as one graph. Segments have the kernels for the number of SMs nearest to theirs at which their model
    /// was timed; a model that was not timed has those for its first segment's.
    pub fn compile(&mut self, segments: &[CudaSegment]) -> Result<CompiledMix, DeviceError> {
        for segment in segments {
            let partition = self.partition(&segment.units)?;
            if self.models[segment.model].plans.is_empty() {
                self.prepare_exactly(segment.model, &partition)?;
            }
            // Kernels are loaded into each partition's context by itself, which is too late while capturing.
            let mixed = &self.models[segment.model];
            let steps = mixed.plan(partition.sm_count()).map(|plan| &plan.steps);
            let kernels = steps.into_iter().flatten().flatten().filter_map(BoundWork::kernel);
            partition.lane.partition.load(kernels)?;
        }
        let mut streams: HashMap<(usize, &UnitSet), Stream> = HashMap::new();
        for segment in segments {
            let partition = &self.partitions[&segment.units];
            streams.insert((segment.model, &segment.units), partition.lane.stream().beside()?);
        }
        let ends = segments.iter().map(|_| Event::new(&self.stream));
        let ends = ends.collect::<Result<Vec<Event>, CudaError>>()?;
        let begin = Event::new(&self.stream)?;
        let mut last_of_model: Vec<Option<usize>> = vec![None; self.models.len()];
        let graph = capture(&self.stream, |recorded| {
            begin.record(recorded)?;
            for (place, segment) in segments.iter().enumerate() {
                let stream = &streams[&(segment.model, &segment.units)];
                stream.wait_event(&begin)?;
                let own = last_of_model[segment.model].replace(place);
                for &wait in segment.waits.iter().filter(|&&wait| wait < place).chain(&own) {
                    stream.wait_event(&ends[wait])?;
                }
                self.record(segment, stream)?;
                ends[place].record(stream)?;
                recorded.wait_event(&ends[place])?;
            }
            Ok::<(), DeviceError>(())
        })?;
        Ok(CompiledMix { graph, token: self.token.clone() })
    }

    /// Runs a schedule that was compiled here, and says how long it took as the host sees it, in microseconds.
    pub fn run_us(&self, schedule: &CompiledMix) -> Result<f64, DeviceError> {
        if !Arc::ptr_eq(&self.token, &schedule.token) {
            return Err(DeviceError::Failed("the schedule is of another mix".to_string()));
        }
        self.models.iter().for_each(|model| model.executable.clear_fault());
        let start = Instant::now();
        schedule.graph.launch(&self.stream)?;
        self.stream.synchronize()?;
        Ok(start.elapsed().as_secs_f64() * 1e6)
    }

    /// Adds a segment's launches to a stream that is being captured.
    fn record(&self, segment: &CudaSegment, stream: &Stream) -> Result<(), DeviceError> {
        let mixed = &self.models[segment.model];
        let plan = mixed.plan(self.partitions[&segment.units].sm_count());
        let steps = plan.and_then(|plan| plan.steps.get(segment.steps.clone()));
        let steps = steps.ok_or_else(|| {
            DeviceError::Failed(format!("there are no steps {:?}", segment.steps))
        })?;
        let mut follows_launch = false;
        for work in steps.iter().flatten() {
            // SAFETY: plans and memory are kept for as long as `self` lives, which alone runs what is recorded; a model's
            // segments wait for each other, and no other model has its memory.
            unsafe { work.add_to(stream, follows_launch) }.map_err(|error| mixed.failed(error))?;
            follows_launch = work.is_launch();
        }
        Ok(())
    }

    /// The partition over some units.
    fn partition(&mut self, units: &UnitSet) -> Result<Arc<CudaPartition>, DeviceError> {
        if let Some(partition) = self.partitions.get(units) {
            return Ok(partition.clone());
        }
        let partition = self.device.cuda_partition(units)?;
        self.partitions.insert(units.clone(), partition.clone());
        Ok(partition)
    }

    /// Makes a model's plan for just these SMs, unless it is there.
    fn prepare_exactly(
        &mut self,
        model: usize,
        partition: &CudaPartition,
    ) -> Result<(), DeviceError> {
        let mixed = &mut self.models[model];
        if let Entry::Vacant(place) = mixed.plans.entry(partition.sm_count()) {
            let bound = BoundPlan::new(&mixed.executable, &mixed.model, &mixed.shapes, partition)?;
            place.insert(bound);
        }
        Ok(())
    }
}

impl MixedModel {
    /// The plan for the number of SMs that is nearest to this one, by their ratio.
    fn plan(&self, sm_count: u32) -> Option<&BoundPlan> {
        let distance = |known: u32| (f64::from(known) / f64::from(sm_count)).ln().abs();
        let nearest = self.plans.keys().copied();
        let nearest =
            nearest.min_by(|&a, &b| distance(a).total_cmp(&distance(b)).then(a.cmp(&b)))?;
        self.plans.get(&nearest)
    }

    fn failed(&self, error: CudaError) -> DeviceError {
        DeviceError::from(error).at(&self.model.name, None)
    }
}

impl BoundPlan {
    fn new(
        executable: &CudaExecutable,
        model: &CudaModel,
        shapes: &[Vec<usize>],
        partition: &CudaPartition,
    ) -> Result<Self, DeviceError> {
        let plan = partition.plan(model, shapes)?;
        let gpu = &partition.gpu;
        let in_model = |error: CudaError| DeviceError::from(error).at(&model.name, None);
        let memory = IoMemory::new(&gpu.context, &plan, 1).map_err(in_model)?;
        let shared = executable.bases_for(plan.report.arena_bytes).map_err(in_model)?;
        let own = memory.bases(shared.arena);
        let bases = Bases { counters: own.counters, ..shared };
        let weights = plan.weights();
        let lane = &partition.lane;
        let preparation =
            Preparation { model: &model.name, report: &plan.report, gpu, lane, bases: &bases };
        // SAFETY: the executable's memory outlives the plans of its model, and the counters and weights are kept beside the
        // steps.
        let stages = unsafe { preparation.stages(plan.stages) }?;
        let mut steps = Vec::new();
        for stage in stages {
            match stage {
                ReadyStage::Device(stage) => steps.extend(stage.steps),
                ReadyStage::Host(_) => {
                    let problem = "the host computes some of its steps".to_string();
                    return Err(DeviceError::Failed(problem).at(&model.name, None));
                }
            }
        }
        if steps.len() != executable.report().steps.len() {
            let problem = "its plans differ in their steps from partition to partition".to_string();
            return Err(DeviceError::Failed(problem).at(&model.name, None));
        }
        Ok(Self { steps, _memory: memory, _weights: weights })
    }
}
