//! Which candidate is fastest: each is run on the partition it is for.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use weft_device::DeviceError;

use crate::bound::BoundLaunch;
use crate::bound_work::BoundWork;
use crate::driver::{CudaError, DeviceBuffer, Stream, encode_tensor_map, fill};
use crate::gpu::Gpu;
use crate::io_memory::FaultWords;
use crate::launch::{Candidate, KernelSource, Launch};
use crate::partition::Lane;
use crate::plan::chooser::{Chooser, Extent, Problem};
use crate::plan::entries::{
    DESCRIPTION_BYTES, EntryBases, EntryBinder, Given, description_count, given,
};
use crate::plan::operands::{OperandBinder, StepPlaces};
use crate::plan::place::{Bases, COUNTER_BYTES, Place};
use crate::plan::placement::ALIGNMENT_BYTES;
use crate::plan::steps::PlannedLaunch;
use crate::timing::median_us;
use crate::vendor::BoundCall;

/// How many candidates of a problem are run, those of libraries and of blocks that stay not counted; the rest are expected to be slower.
const MAX_CANDIDATES: usize = 12;

/// How many problems are remembered; past it they are measured each time.
const MAX_REMEMBERED: usize = 1 << 16;

/// What floats are filled with: 1.06 as `f16`, and neither zero nor huge in any other type.
const FLOAT_BYTE: u8 = 0x3C;

/// The fastest candidates.
#[derive(Default)]
pub(crate) struct Measurements(Mutex<HashMap<Key, usize>>);

/// A problem, the number of SMs, and how many requests one launch computes where that is not one.
type Key = (u128, u32, Option<usize>);

impl Measurements {
    fn get(&self, key: Key) -> Option<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied()
    }

    fn put(&self, key: Key, fastest: usize) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_REMEMBERED {
            known.insert(key, fastest);
        }
    }
}

/// Takes the candidate that was fastest on a partition.
pub(crate) struct MeasuringChooser<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) lane: &'a Lane,
    /// How many requests one launch computes, where it is made for several.
    pub(crate) entries: Option<usize>,
}

impl Chooser for MeasuringChooser<'_> {
    fn choose(&self, problems: &[Problem<'_>]) -> Vec<Result<usize, DeviceError>> {
        let unknown = problems.iter().filter(|problem| self.known(problem).is_none());
        let launches = unknown
            .flat_map(|problem| contenders(problem))
            .flat_map(|(_, candidate)| &candidate.launches);
        let source = |launch: &Launch| match self.entries {
            Some(_) => launch.for_entries(1).source,
            None => launch.source.clone(),
        };
        let sources: Vec<KernelSource> = launches.map(source).collect();
        // A kernel that fails to compile fails again, and alone, where its candidate is measured.
        let _ = self.gpu.kernels.prepare_all(&sources.iter().collect::<Vec<_>>());
        problems.iter().map(|problem| Ok(self.fastest(problem)?)).collect()
    }
}

/// The candidates that are run, with their numbers.
pub(crate) fn contenders<'a>(
    problem: &Problem<'a>,
) -> impl Iterator<Item = (usize, &'a Candidate)> {
    let is_run = |(index, candidate): &(usize, &Candidate)| {
        let stays = candidate.launches.iter().any(|launch| launch.source.stays);
        *index < MAX_CANDIDATES || candidate.library_call.is_some() || stays
    };
    problem.candidates.iter().enumerate().filter(is_run)
}

impl MeasuringChooser<'_> {
    fn key(&self, problem: &Problem<'_>) -> Key {
        (problem.signature(), self.lane.partition.sm_count(), self.entries)
    }

    /// The choice, where there is none to make or it was made before.
    fn known(&self, problem: &Problem<'_>) -> Option<usize> {
        match problem.candidates {
            [_] => Some(0),
            _ => self.gpu.measurements.get(self.key(problem)),
        }
    }

    fn fastest(&self, problem: &Problem<'_>) -> Result<usize, CudaError> {
        if let Some(known) = self.known(problem) {
            return Ok(known);
        }
        // Not the stream that batches run in, so that they wait for no measurement.
        let stream = self.lane.stream().beside()?;
        let bench = Bench::new(self.gpu, problem, &stream, self.entries)?;
        let mut best: Option<(usize, f64)> = None;
        let mut failure = None;
        for (index, candidate) in contenders(problem) {
            match bench.time_us(candidate) {
                Ok(time) if best.is_none_or(|(_, fastest)| time < fastest) => {
                    best = Some((index, time));
                }
                Ok(_) => {}
                Err(error) if error.is_lost() => return Err(error),
                // One candidate that cannot run leaves the others.
                Err(error) => failure = Some(error),
            }
        }
        match (best, failure) {
            (Some((fastest, _)), _) => {
                self.gpu.measurements.put(self.key(problem), fastest);
                Ok(fastest)
            }
            (None, Some(error)) => Err(error),
            (None, None) => Ok(0),
        }
    }
}

/// Memory for the operands of one problem.
struct Bench<'a> {
    gpu: &'a Gpu,
    stream: &'a Stream,
    places: StepPlaces,
    entries: Option<usize>,
    /// Operands and scratch memory of one entry.
    step_bytes: usize,
    /// The same of all of them.
    memory: DeviceBuffer,
    fault: FaultWords,
}

impl<'a> Bench<'a> {
    fn new(
        gpu: &'a Gpu,
        problem: &Problem<'_>,
        stream: &'a Stream,
        entries: Option<usize>,
    ) -> Result<Self, CudaError> {
        let mut end = 0;
        let mut place = |extent: &Option<Extent>| {
            extent.map(|extent| {
                let offset_bytes = end;
                end += extent.size_bytes.next_multiple_of(ALIGNMENT_BYTES);
                Place::Arena { offset_bytes }
            })
        };
        let inputs = problem.inputs.iter().map(&mut place).collect();
        let outputs = problem.outputs.iter().map(&mut place).collect();
        let workspace = contenders(problem).map(|(_, candidate)| candidate.workspace_bytes).max();
        let places = StepPlaces { inputs, outputs, workspace_bytes: end, step: 0 };
        let step_bytes = (end + workspace.unwrap_or(0)).next_multiple_of(ALIGNMENT_BYTES);
        let count = entries.unwrap_or(1);
        let bench = Self {
            gpu,
            stream,
            places,
            entries,
            step_bytes,
            memory: DeviceBuffer::new(&gpu.context, step_bytes * count)?,
            fault: FaultWords::new(&gpu.context, count)?,
        };
        bench.fill_inputs(problem)?;
        Ok(bench)
    }

    /// Gives floats a value that is no special case, and makes integers valid as indices.
    fn fill_inputs(&self, problem: &Problem<'_>) -> Result<(), CudaError> {
        for (place, extent) in self.places.inputs.iter().zip(&problem.inputs) {
            let (Some(Place::Arena { offset_bytes }), Some(extent)) = (place, extent) else {
                continue;
            };
            let byte = if extent.storage.is_float() { FLOAT_BYTE } else { 0 };
            for entry in 0..self.entries.unwrap_or(1) {
                let offset_bytes = entry * self.step_bytes + offset_bytes;
                let address = self.memory.address() + offset_bytes as u64;
                // SAFETY: the range was laid out inside `memory`, which outlives the wait below.
                unsafe { fill(self.stream, address, byte, extent.size_bytes) }?;
            }
        }
        self.stream.synchronize()
    }

    fn time_us(&self, candidate: &Candidate) -> Result<f64, CudaError> {
        let mut binder = OperandBinder::default();
        // What is found in the background counts for batches in the foreground too.
        let sms = self.stream.sm_count();
        let planned: Vec<_> = candidate
            .launches
            .iter()
            .map(|launch| binder.bind(launch.staying_on(sms), &self.places))
            .collect();
        let call = candidate.library_call.as_deref();
        let call = call.map(|call| binder.bind_call(call, &self.places));
        let counter_bytes = binder.counter_count * COUNTER_BYTES;
        let count = self.entries.unwrap_or(1);
        let counters = DeviceBuffer::zeroed(&self.gpu.context, counter_bytes * count)?;
        let bases = Bases {
            arena: self.memory.address(),
            counters: counters.address(),
            fault: self.fault.address(),
            ..Bases::default()
        };
        let weights = match self.entries {
            Some(count) => Some(EntryWeights::new(self.gpu, &planned, count, self.stream)?),
            None => None,
        };
        let description_bytes = description_count(&planned) * count * DESCRIPTION_BYTES;
        let mut descriptions = DeviceBuffer::new(&self.gpu.context, description_bytes)?;
        let planned = match &weights {
            None => planned,
            Some(weights) => {
                let bases = EntryBases {
                    first: bases.clone(),
                    arena_step: self.step_bytes,
                    input_step: 0,
                    output_step: 0,
                    counter_step: counter_bytes,
                    table: weights.table.address(),
                    descriptions: descriptions.address(),
                    capacity: count,
                };
                let mut binder = EntryBinder::new(&bases, &encode_tensor_map);
                let bound = planned.iter().map(|launch| binder.bind(launch));
                let bound = bound.collect::<Result<Vec<_>, _>>()?;
                descriptions.write(0, &binder.descriptions)?;
                bound
            }
        };
        let can_overlap = self.gpu.context.chip().is_hopper_or_later();
        let launch = |planned| BoundLaunch::new(planned, &self.gpu.kernels, &bases, can_overlap);
        let mut work = planned
            .iter()
            .map(|planned| Ok(BoundWork::Launch(launch(planned)?)))
            .collect::<Result<Vec<_>, CudaError>>()?;
        if let Some(call) = call {
            let call = BoundCall::new(&call, self.gpu, &bases)?;
            // SAFETY: operands and scratch memory are this bench's own, and outlive the run.
            unsafe { call.warm_up(self.stream) }?;
            work.push(BoundWork::Call(call));
        }
        // SAFETY: operands, scratch memory and counters are this bench's own, and outlive the runs.
        unsafe { median_us(self.stream, &work) }
    }
}

/// Weights for each of several entries, as those of as many models would lie in memory.
struct EntryWeights {
    table: DeviceBuffer,
    _weights: DeviceBuffer,
    _descriptions: DeviceBuffer,
}

impl EntryWeights {
    fn new(
        gpu: &Gpu,
        launches: &[PlannedLaunch],
        count: usize,
        stream: &Stream,
    ) -> Result<Self, CudaError> {
        let given: Vec<Given> = launches.iter().flat_map(given).collect();
        let size = |given: &Given| given.weights().size_bytes.next_multiple_of(ALIGNMENT_BYTES);
        let all_bytes = given.iter().map(size).sum::<usize>() * count;
        let weights = DeviceBuffer::new(&gpu.context, all_bytes)?;
        // SAFETY: the range is the whole buffer, which outlives the wait below.
        unsafe { fill(stream, weights.address(), FLOAT_BYTE, all_bytes) }?;
        stream.synchronize()?;
        let is_description = |given: &&Given| matches!(given, Given::Description(..));
        let described = given.iter().filter(is_description).count();
        let description_bytes = described * count * DESCRIPTION_BYTES;
        let mut descriptions = DeviceBuffer::new(&gpu.context, description_bytes)?;
        let (mut words, mut bytes) = (vec![count as u64], Vec::new());
        let mut address = weights.address();
        for given in &given {
            for _ in 0..count {
                words.push(match given {
                    Given::Weights(_) => address,
                    Given::Description(_, map) => {
                        let at = descriptions.address() + bytes.len() as u64;
                        bytes.extend(encode_tensor_map(map, address)?);
                        at
                    }
                });
                address += size(given) as u64;
            }
        }
        descriptions.write(0, &bytes)?;
        let table = DeviceBuffer::from_bytes(&gpu.context, bytemuck::cast_slice(&words))?;
        Ok(Self { table, _weights: weights, _descriptions: descriptions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Argument;
    use crate::library_call::{Algorithm, CallOperands, Convolution, LibraryCall, Operation};

    #[test]
    fn libraries_are_run_however_many_kernels_there_are() {
        let image = crate::kernels::gemm::Image {
            size: [4; 2],
            channels: 8,
            output: [4; 2],
            kernel: [1; 2],
            strides: [1; 2],
            dilations: [1; 2],
            pads_begin: [0; 2],
        };
        let convolution = Convolution {
            images: 1,
            image,
            filters: 8,
            has_residual: false,
            is_relu: false,
            algorithm: Algorithm::ImplicitGemm,
            precision: crate::Precision::F16,
        };
        let operands = CallOperands {
            left: Argument::Input(0),
            right: Argument::Null,
            bias: Argument::Null,
            residual: Argument::Null,
            output: Argument::Output(0),
            workspace: Argument::Workspace { offset_bytes: 0 },
        };
        let operation = Operation::Convolution(convolution);
        let mut candidates = vec![Candidate::new("kernel", Vec::new(), 0); MAX_CANDIDATES + 2];
        candidates.push(Candidate {
            library_call: Some(Box::new(LibraryCall { operation, operands })),
            ..Candidate::new("library", Vec::new(), 0)
        });
        let problem = Problem {
            operator: None,
            precision: crate::Precision::F16,
            candidates: &candidates,
            reference: None,
            inputs: vec![],
            outputs: vec![],
        };
        let run: Vec<usize> = contenders(&problem).map(|(index, _)| index).collect();
        let expected: Vec<usize> = (0..MAX_CANDIDATES).chain([MAX_CANDIDATES + 2]).collect();
        assert_eq!(run, expected);
    }
}
