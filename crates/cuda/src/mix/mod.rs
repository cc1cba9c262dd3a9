//! Models of a mix that run together, cut into segments on partitions of their own: one graph, whose branches lie in several
//! partitions and whose edges are what segments wait for.

mod lockstep;
mod model;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use weft_device::{
    CompiledMix, DeviceError, Executable, Mix, MixChunks, MixMember, MixSegment, MixStep, UnitSet,
};
use weft_ir::Value;

use crate::bound_work::BoundWork;
use crate::driver::{CudaError, Event, GraphExec, Stream, StreamPriority, capture};
use crate::gpu::Gpu;
use crate::partition::CudaPartition;
use crate::timing::median_us;
use model::{MixedModel, Part};

/// Partitions that are kept though no schedule uses them.
const MAX_IDLE_PARTITIONS: usize = 96;

/// What putting chunks together takes, in microseconds: the wait for the last of them, and the copies.
const JOINING_US: f64 = 3.0;
const JOINING_BYTES_PER_US: f64 = 0.5e6;

/// Models with memory of their own, any steps of which can run on any partition.
pub(crate) struct CudaMix {
    // What was recorded is dropped before what it was recorded from.
    models: Vec<MixedModel>,
    partitions: HashMap<UnitSet, Arc<CudaPartition>>,
    gpu: Arc<Gpu>,
    stream: Stream,
    /// What each unit of schedules is on the device, and the SMs of all.
    units: Vec<UnitSet>,
    whole_sm_count: u32,
    /// What tells its schedules from those of others.
    token: Arc<()>,
}

/// A schedule that only has to be started.
struct CompiledCudaMix {
    graph: GraphExec,
    token: Arc<()>,
    /// The graph's branches lie in them.
    _partitions: Vec<Arc<CudaPartition>>,
    /// What the graph was recorded from and no model holds.
    _shared: Vec<BoundWork>,
}

impl CudaMix {
    /// Models at fixed shapes, each of which the device computes by itself.
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        models: &[MixMember],
        units: &UnitSet,
    ) -> Result<Self, DeviceError> {
        let whole = Arc::new(CudaPartition { gpu: gpu.clone(), lane: gpu.lane(units)? });
        let mixed = |member: &MixMember| MixedModel::new(&whole, member.clone());
        let models = models.iter().map(mixed).collect::<Result<Vec<_>, DeviceError>>()?;
        let stream = whole.lane.stream().beside()?;
        let whole_sm_count = whole.sm_count();
        let partitions = HashMap::from([(units.clone(), whole)]);
        let is_all = *units == gpu.pool.table().layout().all();
        let units = shared_out(units, is_all);
        let (gpu, token) = (gpu.clone(), Arc::new(()));
        Ok(Self { models, partitions, gpu, stream, units, whole_sm_count, token })
    }

    /// Makes all ready that a segment's launches need: kernels are loaded into each partition's context by itself, which is too
    /// late while capturing.
    fn branches(&mut self, segment: &MixSegment) -> Result<Branches, DeviceError> {
        let priority = match segment.is_filler {
            true => StreamPriority::Background,
            false => StreamPriority::Foreground,
        };
        let whole = self.partition(&segment.units)?;
        let (chunked, at_once) = divided(segment);
        let mut branches = Branches {
            whole: whole.lane.stream().beside_at(priority)?,
            chunks: Vec::new(),
            sm_count: whole.sm_count(),
            partitions: Vec::new(),
        };
        if !at_once.is_empty() {
            let part = Part::WHOLE;
            self.models[segment.model].prepare_first(part.chunks, &whole)?;
            self.load(segment, part, at_once, &whole)?;
        }
        branches.partitions.push(whole);
        if let Some(MixChunks { count, shares, .. }) = &segment.chunks
            && !chunked.is_empty()
        {
            for units in shares {
                let partition = self.partition(units)?;
                self.models[segment.model].prepare_first(*count, &partition)?;
                let part = Part { chunks: *count, number: 0 };
                self.load(segment, part, chunked.clone(), &partition)?;
                let stream = partition.lane.stream().beside_at(priority)?;
                branches.chunks.push((stream, partition.sm_count()));
                branches.partitions.push(partition);
            }
        }
        Ok(branches)
    }

    fn load(
        &self,
        segment: &MixSegment,
        part: Part,
        steps: Range<usize>,
        partition: &CudaPartition,
    ) -> Result<(), DeviceError> {
        let steps = self.models[segment.model].steps(part, partition.sm_count(), steps)?;
        let kernels = steps.iter().flatten().filter_map(BoundWork::kernel);
        Ok(partition.lane.partition.load(kernels)?)
    }

    /// Adds a segment's launches to streams that are being captured: its chunks' between the begin and the end of what is in its
    /// own.
    fn record(&self, segment: &MixSegment, branches: &Branches) -> Result<(), DeviceError> {
        let mixed = &self.models[segment.model];
        let (chunked, at_once) = divided(segment);
        if let Some(MixChunks { count, until, .. }) = segment.chunks
            && !chunked.is_empty()
        {
            let forked = Event::new(&branches.whole)?;
            forked.record(&branches.whole)?;
            branches.chunks.iter().try_for_each(|(stream, _)| stream.wait_event(&forked))?;
            for number in 0..count {
                let (stream, sm_count) = &branches.chunks[number % branches.chunks.len()];
                let part = Part { chunks: count, number };
                let steps = mixed.steps(part, *sm_count, chunked.clone())?;
                // SAFETY: plans and memory are kept for as long as `self` lives, which alone runs what is recorded; a model's
                // segments wait for each other, chunks have memory of their own, and no other model has any of it.
                unsafe { add(steps.iter().flatten(), stream) }
                    .map_err(|error| mixed.failed(error))?;
                if chunked.end == until {
                    // SAFETY: as above.
                    unsafe { mixed.put_together(part, until, stream) }?;
                }
            }
            for (stream, _) in &branches.chunks {
                let ended = Event::new(stream)?;
                ended.record(stream)?;
                branches.whole.wait_event(&ended)?;
            }
        }
        let steps = mixed.steps(Part::WHOLE, branches.sm_count, at_once)?;
        // SAFETY: as above.
        unsafe { add(steps.iter().flatten(), &branches.whole) }.map_err(|error| mixed.failed(error))
    }

    /// The partition over some units.
    fn partition(&mut self, units: &UnitSet) -> Result<Arc<CudaPartition>, DeviceError> {
        if let Some(partition) = self.partitions.get(units) {
            return Ok(partition.clone());
        }
        if self.partitions.len() >= MAX_IDLE_PARTITIONS {
            self.partitions.retain(|_, partition| Arc::strong_count(partition) > 1);
        }
        let (gpu, lane) = (self.gpu.clone(), self.gpu.lane(units)?);
        let partition = Arc::new(CudaPartition { gpu, lane });
        self.partitions.insert(units.clone(), partition.clone());
        Ok(partition)
    }
}

impl Mix for CudaMix {
    fn units(&self) -> &[UnitSet] {
        &self.units
    }

    fn at_once_name(&self) -> &'static str {
        "streams"
    }

    /// Arenas and counters are added as models are timed in more chunks and on more numbers of SMs.
    fn memory_bytes(&self) -> usize {
        self.models.iter().map(MixedModel::memory_bytes).sum()
    }

    /// Kernels differ with the number of SMs.
    fn tolerance(&self) -> f64 {
        2e-2
    }

    fn can_fill(&self) -> bool {
        true
    }

    /// Each takes medians itself.
    fn timings(&self) -> usize {
        1
    }

    fn step_count(&self, model: usize) -> usize {
        self.models[model].step_count()
    }

    fn write_inputs(&mut self, model: usize, inputs: &[Value]) -> Result<(), DeviceError> {
        let executable = &self.models[model].executable;
        executable.write_inputs(inputs)?;
        // Segments run in streams of their own.
        Ok(executable.stream().synchronize()?)
    }

    fn read_outputs(&self, model: usize) -> Result<Vec<Value>, DeviceError> {
        self.models[model].executable.read_outputs()
    }

    /// As [`Executable::run`] gives them.
    fn run_alone(&mut self, model: usize, inputs: &[Value]) -> Result<Vec<Value>, DeviceError> {
        self.models[model].executable.run(inputs)
    }

    fn can_chunk(&self, model: usize, chunks: usize) -> bool {
        self.models[model].can_chunk(chunks)
    }

    /// By what steps from each on need of those before it.
    fn joining_us(&self, model: usize) -> Vec<f64> {
        let mixed = &self.models[model];
        let us = |step| JOINING_US + mixed.carried_bytes(step) as f64 / JOINING_BYTES_PER_US;
        (0..mixed.step_count()).map(us).collect()
    }

    /// Each by itself.
    fn time_steps_us(
        &mut self,
        model: usize,
        chunks: usize,
        units: &UnitSet,
    ) -> Result<Vec<f64>, DeviceError> {
        let partition = self.partition(units)?;
        self.models[model].prepare(chunks, &partition)?;
        let mixed = &self.models[model];
        let part = Part { chunks, number: 0 };
        let steps = mixed.steps(part, partition.sm_count(), 0..mixed.step_count())?;
        let _turn = partition.lane.take_turn();
        let time = |work: &Vec<BoundWork>| {
            // SAFETY: the memory is the model's, which nothing else runs on while `self` is borrowed.
            unsafe { median_us(partition.lane.stream(), work) }.map_err(|error| mixed.failed(error))
        };
        steps.iter().map(time).collect()
    }

    /// Records a schedule as one graph. Segments have the kernels for the number of SMs nearest to theirs at which their model
    /// was timed, in as many chunks; what was not timed has those for its first segment's.
    fn compile(&mut self, segments: &[MixSegment]) -> Result<CompiledMix, DeviceError> {
        let mut branches = Vec::with_capacity(segments.len());
        for segment in segments {
            branches.push(self.branches(segment)?);
        }
        let ends = branches.iter().map(|branches| Event::new(&branches.whole));
        let ends = ends.collect::<Result<Vec<Event>, CudaError>>()?;
        let begin = Event::new(&self.stream)?;
        let mut last_of_model: Vec<Option<usize>> = vec![None; self.models.len()];
        let graph = capture(&self.stream, |recorded| {
            begin.record(recorded)?;
            for (place, (segment, branches)) in segments.iter().zip(&branches).enumerate() {
                let stream = &branches.whole;
                stream.wait_event(&begin)?;
                let own = last_of_model[segment.model].replace(place);
                for &wait in segment.waits.iter().filter(|&&wait| wait < place).chain(&own) {
                    stream.wait_event(&ends[wait])?;
                }
                self.record(segment, branches)?;
                ends[place].record(stream)?;
                recorded.wait_event(&ends[place])?;
            }
            Ok::<(), DeviceError>(())
        })?;
        let partitions = branches.into_iter().flat_map(|branches| branches.partitions).collect();
        let (token, _partitions, _shared) = (self.token.clone(), partitions, Vec::new());
        Ok(CompiledMix::new(CompiledCudaMix { graph, token, _partitions, _shared }))
    }

    /// Steps have the kernels for the number of SMs nearest to those of their units at which their model was timed. It is known
    /// once the models were timed.
    fn can_share(&self, steps: &[MixStep]) -> bool {
        self.is_shared(steps)
    }

    /// Records all steps in one stream. Steps of a set have the kernels that [`Mix::can_share`] speaks of.
    fn compile_shared(&mut self, sets: &[Vec<MixStep>]) -> Result<CompiledMix, DeviceError> {
        self.in_lockstep(sets)
    }

    /// Each in a stream of its own.
    fn at_once(&mut self) -> Result<CompiledMix, DeviceError> {
        let all: UnitSet = self.units.iter().flat_map(UnitSet::iter).collect();
        let segment = |model: usize| MixSegment {
            model,
            steps: 0..self.step_count(model),
            chunks: None,
            units: all.clone(),
            is_filler: false,
            waits: Vec::new(),
        };
        let segments: Vec<MixSegment> = (0..self.models.len()).map(segment).collect();
        self.compile(&segments)
    }

    fn run_us(&mut self, schedule: &CompiledMix) -> Result<f64, DeviceError> {
        let own =
            schedule.of().filter(|own: &&CompiledCudaMix| Arc::ptr_eq(&self.token, &own.token));
        let Some(CompiledCudaMix { graph, .. }) = own else {
            return Err(DeviceError::Failed("the schedule is of another mix".to_string()));
        };
        self.models.iter().for_each(|model| model.executable.clear_fault());
        let start = Instant::now();
        graph.launch(&self.stream)?;
        self.stream.synchronize()?;
        Ok(start.elapsed().as_secs_f64() * 1e6)
    }
}

/// The units that schedules share out. What is left over of all the SMs cannot run every kernel by itself, and is part of the
/// unit before it.
fn shared_out(units: &UnitSet, is_all: bool) -> Vec<UnitSet> {
    let mut shared: Vec<Vec<usize>> = units.iter().map(|unit| vec![unit]).collect();
    if is_all && shared.len() > 1 {
        let last = shared.pop().unwrap_or_default();
        if let Some(before) = shared.last_mut() {
            before.extend(last);
        }
    }
    shared.into_iter().map(|units| units.into_iter().collect()).collect()
}

/// A segment's steps that are computed in chunks, and those that are not.
fn divided(segment: &MixSegment) -> (Range<usize>, Range<usize>) {
    let Range { start, end } = segment.steps;
    let chunks = segment.chunks.as_ref().filter(|chunks| !chunks.shares.is_empty());
    let until = chunks.map_or(start, |chunks| chunks.until.clamp(start, end));
    (start..until, until..end)
}

/// Where the launches of a segment go.
struct Branches {
    whole: Stream,
    /// One for each chunk that runs at the same time, on so many of the SMs.
    chunks: Vec<(Stream, u32)>,
    sm_count: u32,
    partitions: Vec<Arc<CudaPartition>>,
}

/// Adds work to a stream that is being captured.
///
/// # Safety
/// The work and its memory live as long as the graph, and nothing else uses the memory while it runs.
unsafe fn add<'a>(
    work: impl IntoIterator<Item = &'a BoundWork>,
    stream: &Stream,
) -> Result<(), CudaError> {
    let mut follows_launch = false;
    for work in work {
        // SAFETY: the caller vouches for the memory.
        unsafe { work.add_to(stream, follows_launch) }?;
        follows_launch = work.is_launch();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_chunked_until_they_are_not() {
        let segment = |steps: Range<usize>, until| MixSegment {
            model: 0,
            steps,
            chunks: Some(MixChunks { count: 4, until, shares: vec![UnitSet::default()] }),
            units: UnitSet::default(),
            is_filler: false,
            waits: Vec::new(),
        };
        assert_eq!(divided(&segment(2..9, 5)), (2..5, 5..9));
        assert_eq!(divided(&segment(2..9, 20)), (2..9, 9..9));
        assert_eq!(divided(&segment(6..9, 5)), (6..6, 6..9));
        let at_once = MixSegment { chunks: None, ..segment(2..9, 5) };
        assert_eq!(divided(&at_once), (2..2, 2..9));
    }
    #[test]
    fn what_is_left_over_of_all_sms_is_part_of_the_unit_before() {
        let shared = |count, is_all| shared_out(&UnitSet::first(count), is_all);
        assert_eq!(shared(3, true), [UnitSet::first(1), [1, 2].into_iter().collect()]);
        assert_eq!(shared(3, false).len(), 3);
        assert_eq!(shared(1, true), [UnitSet::first(1)]);
    }
}
