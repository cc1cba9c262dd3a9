//! The launches of a plan for a fixed number of entries, with memory for each of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weft_device::{DeviceError, ExecutionReport, check_inputs};
use weft_ir::{OperatorError, Value};

use crate::bound_work::BoundWork;
use crate::driver::{
    CudaError, DeviceBuffer, Event, PinnedBuffer, copy_to_device, copy_to_host, encode_tensor_map,
    fill,
};
use crate::executable::{POISON, fault};
use crate::gpu::Gpu;
use crate::host_copies::HostCopies;
use crate::io_memory::IoMemory;
use crate::partition::Lane;
use crate::plan::entries::{DESCRIPTION_BYTES, EntryBases, EntryBinder, description_count, table};
use crate::plan::place::COUNTER_BYTES;
use crate::plan::placement::ALIGNMENT_BYTES;
use crate::plan::steps::{DeviceStep, DeviceValue, Stage};
use crate::plan::transfer::{decode, encode};
use crate::plan::{ExecutionPlan, OutputSource, PlannedInput};
use crate::preparation::{Preparation, ReadyStage};
use crate::timing::median_us;

/// A request, whose slot is its place among those that run together.
pub(super) struct Request<'a> {
    /// Whose it is, for messages.
    pub(super) model: &'a str,
    pub(super) inputs: &'a [Value],
    /// What the plan's launches are given of its own.
    pub(super) given: &'a [u64],
}

/// A plan for up to `capacity` requests.
pub(super) struct EntryExecutable {
    // What was recorded is dropped before the memory it uses.
    stages: Vec<ReadyStage>,
    pub(super) capacity: usize,
    /// What other plans are compared with that could run as this one.
    pub(super) structure: u128,
    inputs: Vec<PlannedInput>,
    outputs: Vec<OutputSource>,
    output_buffers: Vec<DeviceValue>,
    pub(super) report: ExecutionReport,
    memory: IoMemory,
    table: DeviceBuffer,
    descriptions: DeviceBuffer,
    transfers: Mutex<Transfers>,
    /// Of the lane's arena.
    pub(super) arena_bytes: usize,
    lane: Arc<Lane>,
    copies: Arc<HostCopies>,
}

/// What goes between host and device, the first entry's first.
struct Transfers {
    inputs: PinnedBuffer,
    outputs: PinnedBuffer,
    table: PinnedBuffer,
    ended: Event,
}

impl EntryExecutable {
    pub(super) fn new(
        model: &str,
        plan: ExecutionPlan,
        capacity: usize,
        gpu: &Gpu,
        lane: &Arc<Lane>,
    ) -> Result<Self, DeviceError> {
        let in_model = |error: CudaError| DeviceError::from(error).at(model, None);
        let memory = IoMemory::new(&gpu.context, &plan, capacity).map_err(in_model)?;
        let words = 1 + plan.given().len() * capacity;
        let table_bytes = words * size_of::<u64>();
        let table = DeviceBuffer::new(&gpu.context, table_bytes).map_err(in_model)?;
        let arena_step = plan.report.arena_bytes.next_multiple_of(ALIGNMENT_BYTES);
        let arena_bytes = arena_step * capacity;
        let arena = {
            let mut arena = lane.take_turn();
            arena.grow_to(arena_bytes).map_err(in_model)?;
            arena.address()
        };
        let description_count = description_count(plan.stages.iter().flat_map(Stage::launches));
        let description_bytes = description_count * capacity * DESCRIPTION_BYTES;
        let mut descriptions =
            DeviceBuffer::new(&gpu.context, description_bytes).map_err(in_model)?;
        let bases = EntryBases {
            first: memory.bases(arena),
            arena_step,
            input_step: memory.inputs.size_bytes,
            output_step: memory.outputs.size_bytes,
            counter_step: plan.counter_count * COUNTER_BYTES,
            table: table.address(),
            descriptions: descriptions.address(),
            capacity,
        };
        let pinned = |size_bytes| PinnedBuffer::new(&gpu.context, size_bytes).map_err(in_model);
        let transfers = Transfers {
            inputs: pinned(memory.inputs.size_bytes * capacity)?,
            outputs: pinned(memory.outputs.size_bytes * capacity)?,
            table: pinned(table_bytes)?,
            ended: Event::new(lane.stream()).map_err(in_model)?,
        };
        let structure = plan.structure();
        gpu.context.bind_to_thread().map_err(in_model)?;
        let mut binder = EntryBinder::new(&bases, &encode_tensor_map);
        let bound = bound(plan.stages, &mut binder).map_err(in_model)?;
        descriptions.write(0, &binder.descriptions).map_err(in_model)?;
        let preparation =
            Preparation { model, report: &plan.report, gpu, lane, bases: &bases.first };
        // SAFETY: `memory`, the table, the descriptions and the lane's arena, which never shrinks, live as long as the
        // executable, whose stages are dropped first; the weights that the table names are held by who fills it.
        let stages = unsafe { preparation.stages(bound) }?;
        Ok(Self {
            stages,
            capacity,
            structure,
            inputs: plan.inputs,
            outputs: plan.outputs,
            output_buffers: plan.output_buffers,
            report: plan.report,
            memory,
            table,
            descriptions,
            transfers: Mutex::new(transfers),
            arena_bytes,
            lane: lane.clone(),
            copies: gpu.copies.clone(),
        })
    }

    /// What it takes on the device besides the arena.
    pub(super) fn own_bytes(&self) -> usize {
        self.memory.size_bytes() + self.table.size_bytes() + self.descriptions.size_bytes()
    }

    /// Puts requests' inputs where they are copied from, each into the slot of its place: what is wrong with each. A slot
    /// whose request is wrong holds what it held before.
    pub(super) fn stage_inputs(&self, requests: &[Request<'_>]) -> Vec<Result<(), DeviceError>> {
        let slot_bytes = self.memory.inputs.size_bytes;
        let mut transfers = self.transfers();
        let bytes = &mut transfers.inputs[..slot_bytes * requests.len()];
        let slots: Vec<&mut [u8]> = match slot_bytes {
            0 => requests.iter().map(|_| Default::default()).collect(),
            _ => bytes.chunks_exact_mut(slot_bytes).collect(),
        };
        let staged = requests.iter().zip(slots).collect();
        self.copies
            .each(slot_bytes * requests.len(), staged, |(request, slot)| self.stage(request, slot))
    }

    fn stage(&self, request: &Request<'_>, slot: &mut [u8]) -> Result<(), DeviceError> {
        let expected = self.inputs.iter().map(|input| (input.name.as_str(), &input.fact));
        check_inputs(request.model, expected, request.inputs)?;
        for ((input, value), &offset) in
            self.inputs.iter().zip(request.inputs).zip(&self.memory.inputs.offsets)
        {
            let (Some(uploaded), Some(tensor)) = (&input.uploaded, value.tensor()) else {
                continue;
            };
            let bytes = encode(tensor, uploaded.storage).map_err(|error| DeviceError::Input {
                name: input.name.clone(),
                problem: error.to_string(),
            })?;
            slot[offset..offset + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(())
    }

    /// Copies the inputs of the first slots, and which weights they are for.
    pub(super) fn write(&self, requests: &[Request<'_>]) -> Result<(), CudaError> {
        let mut transfers = self.transfers();
        let given: Vec<_> = requests.iter().map(|request| request.given).collect();
        let words = table(&given, self.capacity);
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        transfers.table[..bytes.len()].copy_from_slice(bytes);
        let stream = self.lane.stream();
        let input_bytes = requests.len() * self.memory.inputs.size_bytes;
        // SAFETY: the buffers have these sizes and live as long as `self`; the pinned ones are not written again before
        // the run has ended, since `read` waits for that and the partition's turn keeps others away.
        unsafe {
            copy_to_device(
                stream,
                self.memory.inputs.device.address(),
                transfers.inputs.as_ptr(),
                input_bytes,
            )?;
            copy_to_device(stream, self.table.address(), transfers.table.as_ptr(), bytes.len())
        }
    }

    /// Starts a run on what was written last, and does not wait for its end.
    pub(super) fn launch(&self) -> Result<(), CudaError> {
        self.memory.faults.clear();
        for stage in &self.stages {
            if let ReadyStage::Device(stage) = stage
                && let Some(graph) = &stage.graph
            {
                graph.launch(self.lane.stream())?;
            }
        }
        Ok(())
    }

    /// Waits for the end of what was launched.
    pub(super) fn wait(&self) -> Result<(), CudaError> {
        let transfers = self.transfers();
        transfers.ended.record(self.lane.stream())?;
        transfers.ended.synchronize()
    }

    /// Waits for the end of the last launch, and hands back the outputs of the first slots.
    pub(super) fn read(
        &self,
        requests: &[Request<'_>],
    ) -> Result<Vec<Result<Vec<Value>, DeviceError>>, CudaError> {
        let mut transfers = self.transfers();
        let (stream, outputs) = (self.lane.stream(), &self.memory.outputs);
        let size_bytes = requests.len() * outputs.size_bytes;
        let destination = transfers.outputs.as_mut_ptr();
        // SAFETY: both buffers are at least this large and live as long as `self`; the pinned one is not looked at
        // before the copy has ended.
        unsafe { copy_to_host(stream, destination, outputs.device.address(), size_bytes) }?;
        transfers.ended.record(stream)?;
        transfers.ended.synchronize()?;
        let staged: &[u8] = &transfers.outputs;
        let read = |(number, Request { model, .. }): (usize, &Request<'_>)| {
            if let Some(fault) = fault(model, &self.report, self.memory.faults.get(number)) {
                return Err(fault);
            }
            let bytes = &staged[number * outputs.size_bytes..][..outputs.size_bytes];
            self.outputs_in(bytes)
                .map_err(|error| DeviceError::Failed(error.to_string()).at(model, None))
        };
        Ok(self.copies.each(size_bytes, requests.iter().enumerate().collect(), read))
    }

    /// What lies in a slot.
    fn outputs_in(&self, slot: &[u8]) -> Result<Vec<Value>, OperatorError> {
        let read = |source: &OutputSource| {
            let OutputSource::Device { buffer, shape } = source else {
                unreachable!("a plan without steps of the host leaves nothing there");
            };
            let value = &self.output_buffers[*buffer];
            let start = self.memory.outputs.offsets[*buffer];
            let bytes = &slot[start..start + value.size_bytes()];
            Ok(decode(bytes, value.storage, value.data_type, shape.clone())?.into())
        };
        self.outputs.iter().map(read).collect()
    }

    /// How long each step takes by itself, on what was written last. The caller has the partition's turn.
    pub(super) fn time_steps(&self) -> Result<Vec<Duration>, CudaError> {
        let steps = self.stages.iter().flat_map(|stage| match stage {
            ReadyStage::Device(stage) => &stage.steps[..],
            ReadyStage::Host(_) => &[],
        });
        let time = |work: &Vec<BoundWork>| {
            // A step never writes what it reads, so that running it again changes nothing.
            // SAFETY: the memory lives as long as `self`, and the turn keeps other runs away.
            let time_us = unsafe { median_us(self.lane.stream(), work) }?;
            Ok(Duration::from_secs_f64(time_us * 1e-6))
        };
        steps.map(time).collect()
    }

    /// Fills its part of the arena and the outputs with what is not a number. The caller has the partition's turn, and the
    /// arena starts at `arena`.
    pub(super) fn poison(&self, arena: u64) -> Result<(), CudaError> {
        let stream = self.lane.stream();
        let outputs = &self.memory.outputs;
        let output_bytes = outputs.size_bytes * self.capacity;
        // SAFETY: both ranges are memory of the GPU that lives as long as `self`; the turn keeps other runs away.
        unsafe {
            fill(stream, arena, POISON, self.arena_bytes)?;
            fill(stream, outputs.device.address(), POISON, output_bytes)?;
        }
        stream.synchronize()
    }

    fn transfers(&self) -> MutexGuard<'_, Transfers> {
        self.transfers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stages of one request as those of all entries.
fn bound(stages: Vec<Stage>, binder: &mut EntryBinder<'_>) -> Result<Vec<Stage>, CudaError> {
    let mut step = |step: DeviceStep| -> Result<DeviceStep, CudaError> {
        let launches = step.launches.iter().map(|launch| binder.bind(launch));
        let launches = launches.collect::<Result<_, _>>()?;
        Ok(DeviceStep { launches, library_call: step.library_call })
    };
    let stage = |stage| match stage {
        Stage::Device(steps) => {
            Ok(Stage::Device(steps.into_iter().map(&mut step).collect::<Result<_, _>>()?))
        }
        host @ Stage::Host(_) => Ok(host),
    };
    stages.into_iter().map(stage).collect()
}
