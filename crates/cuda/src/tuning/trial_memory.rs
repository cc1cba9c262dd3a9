//! What trials read and write: inputs and right results, one for all benches; results and scratch memory, one per bench.

use bytemuck::Zeroable;

use super::operator::CudaOperator;
use super::single_launch;
use crate::Precision;
use crate::bound::BoundLaunch;
use crate::bound_work::BoundWork;
use crate::driver::{
    CudaError, DeviceBuffer, Event, GrowableBuffer, PinnedBuffer, Stream, copy_to_host, fill,
};
use crate::gpu::Gpu;
use crate::io_memory::FaultWords;
use crate::kernels::difference::{Difference, difference_launch};
use crate::kernels::random::random_launch;
use crate::launch::{Candidate, Launch};
use crate::plan::chooser::Extent;
use crate::plan::operands::{OperandBinder, StepPlaces};
use crate::plan::place::{Bases, COUNTER_BYTES, Place};
use crate::plan::placement::ALIGNMENT_BYTES;
use crate::vendor::BoundCall;

/// What a bench has from the start: memory that grows while other benches measure keeps them waiting.
const FIRST_ARENA_BYTES: usize = 64 << 20;
const FIRST_COUNTER_BYTES: usize = 1 << 20;

/// What a bench may have at most: addresses are reserved for all of it.
const MAX_ARENA_BYTES: usize = 16 << 30;
const MAX_COUNTER_BYTES: usize = 1 << 30;

/// Inputs of an operator, and what it makes of them.
pub(super) struct Expected {
    inputs: Vec<u64>,
    outputs: Vec<u64>,
    /// Keeps the addresses valid.
    _memory: DeviceBuffer,
}

/// Where extents lie one after the other; absent ones take nothing.
fn layout(extents: &[Option<Extent>], end: &mut usize) -> Vec<usize> {
    let mut place = |extent: &Option<Extent>| {
        let start = *end;
        *end += extent.map_or(0, |extent| extent.size_bytes.next_multiple_of(ALIGNMENT_BYTES));
        start
    };
    extents.iter().map(&mut place).collect()
}

/// Memory of one bench, used by one trial at a time.
pub(super) struct TrialMemory {
    /// Results and scratch memory; growing it moves nothing and waits for nobody, unlike allocating.
    arena: GrowableBuffer,
    counters: GrowableBuffer,
    fault: FaultWords,
    difference: DeviceBuffer,
    read: PinnedBuffer,
    end: Event,
}

/// A candidate that only has to be started.
pub(super) struct Bound {
    pub(super) work: Vec<BoundWork>,
    outputs: Vec<u64>,
    counter_bytes: usize,
}

impl TrialMemory {
    /// Memory for trials in a stream.
    pub(super) fn new(stream: &Stream) -> Result<Self, CudaError> {
        let context = stream.context();
        let mut arena = GrowableBuffer::reserve(context, MAX_ARENA_BYTES)?;
        let mut counters = GrowableBuffer::reserve(context, MAX_COUNTER_BYTES)?;
        arena.grow_to(FIRST_ARENA_BYTES)?;
        counters.grow_to(FIRST_COUNTER_BYTES)?;
        Ok(Self {
            arena,
            counters,
            fault: FaultWords::new(context, 1)?,
            difference: DeviceBuffer::zeroed(context, size_of::<Difference>())?,
            read: PinnedBuffer::new(context, size_of::<Difference>())?,
            end: Event::to_sleep_for(stream)?,
        })
    }

    /// Waits, without keeping a core busy, until all work in the stream has ended.
    pub(super) fn wait(&self, stream: &Stream) -> Result<(), CudaError> {
        self.end.record(stream)?;
        self.end.synchronize()
    }

    /// Binds a candidate to the operator's inputs and to this memory, with launches as `shape` makes them.
    ///
    /// # Safety
    /// What is returned runs no longer than the operator's inputs live, and only while nothing else uses this memory.
    pub(super) unsafe fn bind(
        &mut self,
        operator: &CudaOperator,
        expected: &Expected,
        candidate: &Candidate,
        stream: &Stream,
        shape: impl Fn(&Launch) -> Launch,
    ) -> Result<Bound, CudaError> {
        let mut end = 0;
        let outputs = layout(&operator.outputs, &mut end);
        self.arena.grow_to(end + candidate.workspace_bytes)?;
        let is_present = |(index, extent): (usize, &Option<Extent>)| extent.map(|_| index);
        let places = StepPlaces {
            inputs: operator
                .inputs
                .iter()
                .enumerate()
                .map(is_present)
                .map(|index| index.map(Place::Input))
                .collect(),
            outputs: outputs
                .iter()
                .map(|&offset_bytes| Some(Place::Arena { offset_bytes }))
                .collect(),
            workspace_bytes: end,
            step: 0,
        };
        let mut binder = OperandBinder::default();
        let planned: Vec<_> =
            candidate.launches.iter().map(|launch| binder.bind(shape(launch), &places)).collect();
        let call = candidate.library_call.as_deref();
        let call = call.map(|call| binder.bind_call(call, &places));
        let counter_bytes = binder.counter_count * COUNTER_BYTES;
        self.counters.grow_to(counter_bytes)?;
        let bases = Bases {
            arena: self.arena.address(),
            inputs: expected.inputs.clone(),
            outputs: Vec::new(),
            counters: self.counters.address(),
            fault: self.fault.address(),
        };
        let gpu = &operator.gpu;
        let can_overlap = gpu.context.chip().is_hopper_or_later();
        let mut work = planned
            .iter()
            .map(|planned| BoundLaunch::new(planned, &gpu.kernels, &bases, can_overlap))
            .map(|bound| bound.map(BoundWork::Launch))
            .collect::<Result<Vec<_>, CudaError>>()?;
        if let Some(call) = call {
            let call = BoundCall::new(&call, gpu, &bases)?;
            // SAFETY: the caller vouches for the memory.
            unsafe { call.warm_up(stream) }?;
            work.push(BoundWork::Call(call));
        }
        let outputs = outputs.iter().map(|&offset| self.arena.address() + offset as u64).collect();
        Ok(Bound { work, outputs, counter_bytes })
    }

    /// Makes the memory ready for a bound candidate: counters are zero, and results are no numbers.
    ///
    /// # Safety
    /// Nothing uses this memory.
    pub(super) unsafe fn clear(
        &self,
        operator: &CudaOperator,
        bound: &Bound,
        stream: &Stream,
    ) -> Result<(), CudaError> {
        self.fault.clear();
        // SAFETY: the counters were grown for the candidate.
        unsafe { fill(stream, self.counters.address(), 0, bound.counter_bytes) }?;
        for (&address, extent) in bound.outputs.iter().zip(&operator.outputs) {
            let size_bytes = extent.map_or(0, |extent| extent.size_bytes);
            // SAFETY: the arena was grown for the operator's results.
            unsafe { fill(stream, address, 0xFF, size_bytes) }?;
        }
        Ok(())
    }

    /// How far the results of a candidate that was run are from what is expected, once all work in the stream has ended.
    ///
    /// # Safety
    /// Nothing uses this memory but what is in the stream.
    pub(super) unsafe fn difference(
        &mut self,
        operator: &CudaOperator,
        expected: &Expected,
        bound: &Bound,
        stream: &Stream,
    ) -> Result<Difference, CudaError> {
        let size_bytes = size_of::<Difference>();
        // SAFETY: the buffer is this bench's own and as large.
        unsafe { fill(stream, self.difference.address(), 0, size_bytes) }?;
        let outputs = bound.outputs.iter().zip(&expected.outputs).zip(&operator.outputs);
        for ((&values, &reference), extent) in outputs {
            let Some(extent) = extent else { continue };
            let count = extent.size_bytes / extent.storage.size_bytes();
            use crate::launch::Argument::{Input, Output};
            let launch = difference_launch(extent.storage, count, Input(0), Input(1), Output(0));
            let (inputs, outputs) = ([values, reference], [self.difference.address()]);
            // SAFETY: both hold as many elements, and the result has its place.
            unsafe { single_launch::run(&operator.gpu, stream, launch, &inputs, &outputs) }?;
        }
        // SAFETY: both are as large, and the host looks at its side after the wait.
        unsafe {
            copy_to_host(stream, self.read.as_mut_ptr(), self.difference.address(), size_bytes)
        }?;
        self.wait(stream)?;
        let mut difference = Difference::zeroed();
        bytemuck::bytes_of_mut(&mut difference).copy_from_slice(&self.read[..size_bytes]);
        Ok(difference)
    }

    /// True where a kernel reported input that it cannot compute with.
    pub(super) fn has_fault(&self) -> bool {
        self.fault.get(0) != 0
    }
}

impl Expected {
    /// Fills the inputs and runs the reference on them, on the partition of `stream`.
    pub(super) fn new(
        operator: &CudaOperator,
        memory: &mut TrialMemory,
        stream: &Stream,
    ) -> Result<Self, CudaError> {
        let mut end = 0;
        let inputs = layout(&operator.inputs, &mut end);
        let outputs = layout(&operator.outputs, &mut end);
        let buffer = DeviceBuffer::new(&operator.gpu.context, end)?;
        let at = |offset: &usize| buffer.address() + *offset as u64;
        let expected = Self {
            inputs: inputs.iter().map(at).collect(),
            outputs: outputs.iter().map(at).collect(),
            _memory: buffer,
        };
        for (index, (&address, extent)) in expected.inputs.iter().zip(&operator.inputs).enumerate()
        {
            if let Some(extent) = extent {
                // SAFETY: the range was laid out inside the buffer, which nothing else knows of yet.
                unsafe { fill_input(&operator.gpu, stream, address, extent, index) }?;
            }
        }
        // SAFETY: the inputs live, and the bench's memory is its own between trials.
        let bound = unsafe {
            memory.bind(operator, &expected, &operator.reference, stream, Launch::clone)
        }?;
        // SAFETY: as above.
        unsafe { memory.clear(operator, &bound, stream) }?;
        for work in &bound.work {
            // SAFETY: as above; the work ends before the wait below does.
            unsafe { work.add_to(stream, false) }?;
        }
        let copies = bound.outputs.iter().zip(&expected.outputs).zip(&operator.outputs);
        for ((&from, &to), extent) in copies {
            let size_bytes = extent.map_or(0, |extent| extent.size_bytes);
            // SAFETY: both ranges were laid out for the operator's results.
            unsafe { crate::driver::copy_on_device(stream, to, from, size_bytes) }?;
        }
        memory.wait(stream)?;
        Ok(expected)
    }
}

/// Random numbers between -1 and 1 for floats, and zeros for all else, which are valid as indices.
///
/// # Safety
/// The range at `address` is as large as the extent, and nothing else uses it until the stream's work has ended.
unsafe fn fill_input(
    gpu: &Gpu,
    stream: &Stream,
    address: u64,
    extent: &Extent,
    seed: usize,
) -> Result<(), CudaError> {
    let count = extent.size_bytes / extent.storage.size_bytes();
    if !extent.storage.is_float() || count == 0 {
        // SAFETY: the caller vouches for the range.
        return unsafe { fill(stream, address, 0, extent.size_bytes) };
    }
    let to = crate::launch::Argument::Output(0);
    let launch = random_launch(extent.storage, count, to, seed as u32 + 1);
    // SAFETY: the caller vouches for the range.
    unsafe { single_launch::run(gpu, stream, launch, &[], &[address]) }
}

/// How far results may be from the reference: in norm, and each by itself next to the largest.
pub(super) fn tolerance(precision: Precision) -> (f64, f64) {
    match precision {
        Precision::F16 => (2e-3, 8e-3),
        Precision::Bf16 => (1.6e-2, 6.4e-2),
        Precision::Tf32 => (1e-4, 1e-3),
        Precision::F32 => (1e-5, 1e-4),
    }
}
