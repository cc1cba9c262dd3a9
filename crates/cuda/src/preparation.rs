//! From a plan to something that only has to be started: kernels compiled, addresses filled in, graphs recorded.

use weft_device::{DeviceError, ExecutionReport};

use crate::bound::BoundLaunch;
use crate::bound_work::BoundWork;
use crate::driver::{CudaError, GraphExec, capture};
use crate::gpu::Gpu;
use crate::launch::KernelSource;
use crate::library_call::LibraryCall;
use crate::partition::Lane;
use crate::plan::place::{Bases, Place};
use crate::plan::steps::{DeviceStep, HostStep, Stage};
use crate::vendor::BoundCall;

/// A stage that only has to be started.
pub(crate) enum ReadyStage {
    Device(DeviceStage),
    Host(HostStep),
}

/// Steps that are one graph.
pub(crate) struct DeviceStage {
    /// `None` where nothing is launched.
    pub(crate) graph: Option<GraphExec>,
    /// What the graph was recorded from, step by step.
    pub(crate) steps: Vec<Vec<BoundWork>>,
}

impl ReadyStage {
    /// How many steps of the report it is.
    pub(crate) fn step_count(&self) -> usize {
        match self {
            ReadyStage::Device(stage) => stage.steps.len(),
            ReadyStage::Host(_) => 1,
        }
    }
}

/// What stages are made ready with.
pub(crate) struct Preparation<'a> {
    pub(crate) model: &'a str,
    pub(crate) report: &'a ExecutionReport,
    pub(crate) gpu: &'a Gpu,
    pub(crate) lane: &'a Lane,
    pub(crate) bases: &'a Bases,
}

impl Preparation<'_> {
    /// Makes all stages of a plan ready.
    ///
    /// # Safety
    /// The memory that the bases and the weights of the stages name lives as long as what is returned.
    pub(crate) unsafe fn stages(&self, stages: Vec<Stage>) -> Result<Vec<ReadyStage>, DeviceError> {
        let sources: Vec<&KernelSource> =
            stages.iter().flat_map(Stage::launches).map(|planned| &planned.launch.source).collect();
        // All at once, on many threads. What fails fails again below, where the node is known.
        let _ = self.gpu.kernels.prepare_all(&sources);
        let mut first_step = 0;
        let mut ready = Vec::with_capacity(stages.len());
        for stage in stages {
            let stage = match stage {
                // SAFETY: the caller vouches for the memory.
                Stage::Device(steps) => unsafe { self.device_stage(&steps, first_step) }?,
                Stage::Host(step) => ReadyStage::Host(step),
            };
            first_step += stage.step_count();
            ready.push(stage);
        }
        Ok(ready)
    }

    /// # Safety
    /// As for [`Preparation::stages`].
    unsafe fn device_stage(
        &self,
        steps: &[DeviceStep],
        first_step: usize,
    ) -> Result<ReadyStage, DeviceError> {
        let can_overlap = self.gpu.context.chip().is_hopper_or_later();
        let mut bound = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            let in_step = |error| self.in_step(first_step + index, error);
            let launches = step
                .launches
                .iter()
                .map(|launch| BoundLaunch::new(launch, &self.gpu.kernels, self.bases, can_overlap))
                .collect::<Result<Vec<_>, _>>()
                .map_err(in_step)?;
            let kernels = launches.iter().map(BoundLaunch::kernel);
            self.lane.partition.load(kernels).map_err(in_step)?;
            let mut work: Vec<BoundWork> = launches.into_iter().map(BoundWork::Launch).collect();
            if let Some(call) = &step.library_call {
                // SAFETY: the caller vouches for the memory.
                work.push(BoundWork::Call(unsafe { self.bind_call(call) }.map_err(in_step)?));
            }
            bound.push(work);
        }
        // SAFETY: the work is kept beside the graph; the caller vouches for the memory.
        let graph = unsafe { self.record(&bound, first_step) }?;
        Ok(ReadyStage::Device(DeviceStage { graph, steps: bound }))
    }

    /// # Safety
    /// As for [`Preparation::stages`].
    unsafe fn bind_call(&self, call: &LibraryCall<Place>) -> Result<BoundCall, CudaError> {
        let bound = BoundCall::new(call, self.gpu, self.bases)?;
        // Between two batches the arena is nobody's; those that use it in several stages have the turn meanwhile.
        let _turn = self.lane.take_turn();
        // SAFETY: the turn and the order of the lane's stream keep others away; the caller vouches for the memory.
        unsafe { bound.warm_up(self.lane.stream()) }?;
        Ok(bound)
    }

    /// # Safety
    /// As for [`Preparation::stages`], and the work lives as long as the graph.
    unsafe fn record(
        &self,
        steps: &[Vec<BoundWork>],
        first_step: usize,
    ) -> Result<Option<GraphExec>, DeviceError> {
        if steps.iter().all(Vec::is_empty) {
            return Ok(None);
        }
        let mut follows_launch = false;
        let graph = capture(self.lane.stream(), |stream| {
            for (index, work) in steps
                .iter()
                .enumerate()
                .flat_map(|(index, step)| step.iter().map(move |work| (index, work)))
            {
                // SAFETY: the caller vouches for the memory and the work.
                let added = unsafe { work.add_to(stream, follows_launch) };
                added.map_err(|error| self.in_step(first_step + index, error))?;
                follows_launch = work.is_launch();
            }
            Ok::<(), DeviceError>(())
        })?;
        Ok(Some(graph))
    }

    fn in_step(&self, step: usize, error: CudaError) -> DeviceError {
        let node = self.report.steps.get(step).map(|step| step.node.as_str());
        DeviceError::from(error).at(self.model, node)
    }
}
