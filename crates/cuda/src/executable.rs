//! A plan on a partition: checks the inputs, launches the graphs, hands back the outputs.

mod host_steps;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weft_device::{DeviceError, Executable, ExecutionReport, check_inputs};
use weft_ir::{GraphError, OperatorError, Value};

use crate::driver::{CudaError, Event, PinnedBuffer, Stream, copy_to_device, copy_to_host, fill};
use crate::gpu::Gpu;
use crate::io_memory::IoMemory;
use crate::launch::DeviceWeights;
use crate::partition::Lane;
use crate::plan::host::HostValues;
use crate::plan::place::Bases;
use crate::plan::steps::DeviceValue;
use crate::plan::transfer::{decode, encode};
use crate::plan::{ExecutionPlan, OutputSource, PlannedInput};
use crate::preparation::{Preparation, ReadyStage};
use crate::timing::median_us;

/// What memory is filled with where a test wants to see that every element is written: not a number in any float.
pub(crate) const POISON: u8 = 0xFF;

/// A model at fixed shapes on one partition of a GPU.
///
/// [`Executable::run`] does all of it. The parts it is made of are there for those who keep a partition busy:
/// [`CudaExecutable::write_inputs`], [`CudaExecutable::launch`], [`CudaExecutable::wait`] and
/// [`CudaExecutable::read_outputs`]. The partition's stream keeps them in order, so that a launch may follow another
/// before it has ended. Who uses the parts sees to it that nobody else uses the same executable meanwhile, or inputs
/// and outputs of different runs mix.
pub struct CudaExecutable {
    // What was recorded is dropped before the memory it uses.
    stages: Vec<ReadyStage>,
    model: String,
    inputs: Vec<PlannedInput>,
    outputs: Vec<OutputSource>,
    output_buffers: Vec<DeviceValue>,
    host_slot_count: usize,
    /// What one run moves through the GPU's memory, as estimated.
    dram_bytes: usize,
    report: ExecutionReport,
    memory: IoMemory,
    bases: Bases,
    transfers: Mutex<Transfers>,
    /// The end of the last launch.
    finished: Event,
    lane: Arc<Lane>,
    /// What the graphs read, kept alive.
    _weights: Vec<Arc<DeviceWeights>>,
}

/// What goes between host and device.
struct Transfers {
    inputs: PinnedBuffer,
    outputs: PinnedBuffer,
    /// The end of the last copy from `inputs`.
    uploaded: Event,
    /// The end of the last copy to `outputs`.
    downloaded: Event,
    host: HostValues,
}

impl CudaExecutable {
    pub(crate) fn new(
        model: &str,
        plan: ExecutionPlan,
        gpu: &Gpu,
        lane: Arc<Lane>,
    ) -> Result<Self, DeviceError> {
        let in_model = |error: CudaError| DeviceError::from(error).at(model, None);
        let memory = IoMemory::new(&gpu.context, &plan, 1).map_err(in_model)?;
        let arena = {
            let mut arena = lane.take_turn();
            arena.grow_to(plan.report.arena_bytes).map_err(in_model)?;
            arena.address()
        };
        let bases = memory.bases(arena);
        let transfers = Transfers::new(gpu, &lane, &memory).map_err(in_model)?;
        let finished = Event::new(lane.stream()).map_err(in_model)?;
        let weights = plan.weights();
        let preparation =
            Preparation { model, report: &plan.report, gpu, lane: &lane, bases: &bases };
        // SAFETY: `memory`, the lane's arena, which never shrinks, and the weights live as long as the executable,
        // whose stages are dropped first.
        let stages = unsafe { preparation.stages(plan.stages) }?;
        Ok(Self {
            stages,
            model: model.to_string(),
            inputs: plan.inputs,
            outputs: plan.outputs,
            output_buffers: plan.output_buffers,
            host_slot_count: plan.host_slot_count,
            dram_bytes: plan.dram_bytes,
            report: plan.report,
            memory,
            bases,
            transfers: Mutex::new(transfers),
            finished,
            lane,
            _weights: weights,
        })
    }

    /// Checks the inputs and copies them to the device, after whatever was launched before.
    pub fn write_inputs(&self, inputs: &[Value]) -> Result<(), DeviceError> {
        let expected = self.inputs.iter().map(|input| (input.name.as_str(), &input.fact));
        check_inputs(&self.model, expected, inputs)?;
        let mut transfers = self.transfers();
        transfers.uploaded.synchronize().map_err(|error| self.in_model(error))?;
        for ((input, value), &offset) in
            self.inputs.iter().zip(inputs).zip(&self.memory.inputs.offsets)
        {
            let (Some(uploaded), Some(tensor)) = (&input.uploaded, value.tensor()) else {
                continue;
            };
            let bytes = encode(tensor, uploaded.storage).map_err(|error| DeviceError::Input {
                name: input.name.clone(),
                problem: error.to_string(),
            })?;
            transfers.inputs[offset..offset + bytes.len()].copy_from_slice(&bytes);
        }
        let given = if self.has_host_steps() { inputs.to_vec() } else { Vec::new() };
        transfers.host = HostValues::new(given, self.host_slot_count);
        self.copy_inputs(&transfers).map_err(|error| self.in_model(error))
    }

    fn copy_inputs(&self, transfers: &Transfers) -> Result<(), CudaError> {
        let (stream, inputs) = (self.lane.stream(), &self.memory.inputs);
        let source = transfers.inputs.as_ptr();
        // SAFETY: both buffers have this size and live as long as `self`; the pinned one is not written before
        // `uploaded` is reached.
        unsafe { copy_to_device(stream, inputs.device.address(), source, inputs.size_bytes) }?;
        transfers.uploaded.record(stream)
    }

    /// Starts a run on the inputs that were written last, and does not wait for its end. Where the model has steps on
    /// the host, these are waited for.
    pub fn launch(&self) -> Result<(), DeviceError> {
        // Between two stages nobody else may use the arena.
        let _turn = self.has_host_steps().then(|| self.lane.take_turn());
        self.launch_stages()
    }

    fn launch_stages(&self) -> Result<(), DeviceError> {
        self.memory.faults.clear();
        let mut step = 0;
        for stage in &self.stages {
            match stage {
                ReadyStage::Device(stage) => {
                    if let Some(graph) = &stage.graph {
                        graph.launch(self.lane.stream()).map_err(|error| self.in_model(error))?;
                    }
                }
                ReadyStage::Host(host_step) => self.run_on_host(host_step, step)?,
            }
            step += stage.step_count();
        }
        self.finished.record(self.lane.stream()).map_err(|error| self.in_model(error))
    }

    /// Adds its launches to a stream that is being captured.
    ///
    /// # Safety
    /// The executable lives as long as the graph, and nothing else uses its lane's arena while the graph runs.
    pub(crate) unsafe fn record(&self, stream: &Stream) -> Result<(), DeviceError> {
        let mut follows_launch = false;
        for stage in &self.stages {
            let ReadyStage::Device(stage) = stage else {
                let problem = "the host computes some of its steps";
                return Err(DeviceError::Failed(problem.to_string()).at(&self.model, None));
            };
            for work in stage.steps.iter().flatten() {
                // SAFETY: the work and its memory are the executable's, for whose life the caller vouches.
                unsafe { work.add_to(stream, follows_launch) }
                    .map_err(|error| self.in_model(error))?;
                follows_launch = work.is_launch();
            }
        }
        Ok(())
    }

    /// Forgets what a kernel reported of a run before.
    pub(crate) fn clear_fault(&self) {
        self.memory.faults.clear();
    }

    /// The addresses of its memory, with an arena of at least so many bytes, for another plan of its model.
    pub(crate) fn bases_for(&self, arena_bytes: usize) -> Result<Bases, CudaError> {
        self.lane.take_turn().grow_to(arena_bytes)?;
        Ok(self.bases.clone())
    }

    pub(crate) fn stream(&self) -> &Stream {
        self.lane.stream()
    }

    /// Waits for the end of the last launch.
    pub fn wait(&self) -> Result<(), DeviceError> {
        self.finished.synchronize().map_err(|error| self.in_model(error))?;
        self.check_fault()
    }

    /// True where the last launch has ended.
    pub fn is_finished(&self) -> Result<bool, DeviceError> {
        self.finished.is_reached().map_err(|error| self.in_model(error))
    }

    /// Waits for the end of the last launch, and hands back its outputs.
    pub fn read_outputs(&self) -> Result<Vec<Value>, DeviceError> {
        let mut transfers = self.transfers();
        self.copy_outputs(&mut transfers).map_err(|error| self.in_model(error))?;
        self.check_fault()?;
        let read = |source: &OutputSource| match source {
            OutputSource::Host(operand) => transfers.host.get(operand),
            OutputSource::Device { buffer, shape } => {
                let value = &self.output_buffers[*buffer];
                let start = self.memory.outputs.offsets[*buffer];
                let bytes = &transfers.outputs[start..start + value.size_bytes()];
                Ok(decode(bytes, value.storage, value.data_type, shape.clone())?.into())
            }
        };
        let outputs = self.outputs.iter().map(read).collect::<Result<Vec<_>, OperatorError>>();
        outputs.map_err(|error| DeviceError::Failed(error.to_string()).at(&self.model, None))
    }

    fn copy_outputs(&self, transfers: &mut Transfers) -> Result<(), CudaError> {
        let (stream, outputs) = (self.lane.stream(), &self.memory.outputs);
        let destination = transfers.outputs.as_mut_ptr();
        // SAFETY: both buffers have this size and live as long as `self`; the pinned one is not looked at before
        // `downloaded` is reached.
        unsafe { copy_to_host(stream, destination, outputs.device.address(), outputs.size_bytes) }?;
        transfers.downloaded.record(stream)?;
        transfers.downloaded.synchronize()
    }

    /// What one run moves through the GPU's memory: the weights once, and what its L2 cache is too small to keep. An
    /// estimate, made from the plan alone.
    pub fn dram_bytes(&self) -> usize {
        self.dram_bytes
    }

    /// The GPU's memory that it needs: weights, which executables of the same model share; the arena, which all that
    /// is prepared on the partition shares; and inputs and outputs of its own.
    pub fn memory_bytes(&self) -> usize {
        self.report.weight_bytes + self.report.arena_bytes + self.memory.size_bytes()
    }

    /// What it takes on the device besides weights where its lane is nobody else's.
    pub(crate) fn own_bytes(&self) -> usize {
        self.lane.take_turn().size_bytes() + self.memory.size_bytes()
    }

    /// Fills the partition's arena and the outputs with what is not a number, so that a test sees what the next run
    /// leaves unwritten.
    pub fn poison(&self) -> Result<(), DeviceError> {
        let arena = self.lane.take_turn();
        let stream = self.lane.stream();
        let outputs = &self.memory.outputs;
        // SAFETY: both ranges are memory of the GPU that lives as long as `self`; the turn keeps other runs away.
        let filled = unsafe {
            fill(stream, arena.address(), POISON, arena.size_bytes())
                .and_then(|()| fill(stream, outputs.device.address(), POISON, outputs.size_bytes))
        };
        filled.and_then(|()| stream.synchronize()).map_err(|error| self.in_model(error))
    }

    /// The error of a kernel that met input it cannot compute with.
    fn check_fault(&self) -> Result<(), DeviceError> {
        fault(&self.model, &self.report, self.memory.faults.get(0)).map_or(Ok(()), Err)
    }

    fn has_host_steps(&self) -> bool {
        self.stages.iter().any(|stage| matches!(stage, ReadyStage::Host(_)))
            || self.outputs.iter().any(|output| matches!(output, OutputSource::Host(_)))
    }

    fn transfers(&self) -> MutexGuard<'_, Transfers> {
        self.transfers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_model(&self, error: CudaError) -> DeviceError {
        DeviceError::from(error).at(&self.model, None)
    }

    fn in_step(&self, step: usize, error: CudaError) -> DeviceError {
        let node = self.report.steps.get(step).map(|step| step.node.as_str());
        DeviceError::from(error).at(&self.model, node)
    }

    fn in_operator(&self, step: usize, source: OperatorError) -> DeviceError {
        in_operator(&self.model, &self.report, step, source)
    }
}

/// The error that the fault word of a run tells of, where it does.
pub(crate) fn fault(model: &str, report: &ExecutionReport, word: u32) -> Option<DeviceError> {
    let step = usize::try_from(word).ok()?.checked_sub(1)?;
    let problem = "its input has values that it is not defined for".to_string();
    Some(in_operator(model, report, step, OperatorError::Invalid(problem)))
}

fn in_operator(
    model: &str,
    report: &ExecutionReport,
    step: usize,
    source: OperatorError,
) -> DeviceError {
    let step = report.steps.get(step);
    let source = GraphError::Node {
        node: step.map_or_else(String::new, |step| step.node.clone()),
        operator: step.map_or_else(String::new, |step| step.operator.clone()),
        source,
    };
    DeviceError::Model { model: model.to_string(), source: Box::new(source) }
}

impl Transfers {
    fn new(gpu: &Gpu, lane: &Lane, memory: &IoMemory) -> Result<Self, CudaError> {
        Ok(Self {
            inputs: PinnedBuffer::new(&gpu.context, memory.inputs.size_bytes)?,
            outputs: PinnedBuffer::new(&gpu.context, memory.outputs.size_bytes)?,
            uploaded: Event::new(lane.stream())?,
            downloaded: Event::new(lane.stream())?,
            host: HostValues::default(),
        })
    }
}

impl Executable for CudaExecutable {
    fn run(&self, inputs: &[Value]) -> Result<Vec<Value>, DeviceError> {
        let _turn = self.lane.take_turn();
        self.write_inputs(inputs)?;
        self.launch_stages()?;
        self.read_outputs()
    }

    fn time_steps(&self, inputs: &[Value]) -> Result<Vec<Duration>, DeviceError> {
        let _turn = self.lane.take_turn();
        self.write_inputs(inputs)?;
        let mut times = Vec::with_capacity(self.report.steps.len());
        for stage in &self.stages {
            match stage {
                ReadyStage::Device(stage) => {
                    for work in &stage.steps {
                        // A step never writes what it reads, so that running it again changes nothing.
                        // SAFETY: the memory lives as long as `self`, and the turn keeps other runs away.
                        let time = unsafe { median_us(self.lane.stream(), work) };
                        let time = time.map_err(|error| self.in_step(times.len(), error))?;
                        times.push(Duration::from_secs_f64(time * 1e-6));
                    }
                }
                ReadyStage::Host(step) => {
                    let start = Instant::now();
                    self.run_on_host(step, times.len())?;
                    times.push(start.elapsed());
                }
            }
        }
        self.check_fault()?;
        Ok(times)
    }

    fn report(&self) -> &ExecutionReport {
        &self.report
    }
}

#[cfg(test)]
mod tests;
