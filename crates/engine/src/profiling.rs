//! Measuring how long a model takes on the device at hand, as it will be served: with its inputs and outputs in the host's
//! memory.

use std::time::{Duration, Instant};

use weft_device::{
    Buckets, Device, DeviceError, ExecutionReport, LoadedModel, UnitSet, bucket_sizes,
};
use weft_ir::{DataType, Dimensions, GraphError, OperatorError, Tensor, Value};
use weft_scheduler::{Profile, ProfileError, ProfilePoint, Span};

use crate::moments::{FEWEST_MOMENTS, Moments};

/// No larger batch is measured past a run that takes so long.
pub(crate) const LONGEST_RUN: Duration = Duration::from_secs(1);

/// Every case is run at least so often, unless a run takes longer than all of its time.
const FEWEST_RUNS: usize = 3;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Profiling<'a> {
    /// The units that a service may use.
    pub units: &'a UnitSet,
    /// What the model's open dimensions are, but for the batch.
    pub dimensions: &'a Dimensions,
    /// Batches are measured up to this one, unless they take too long.
    pub largest_batch: u32,
    /// How long each case is measured, about.
    pub time_per_case: Duration,
}

/// Why a model has no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfilingError {
    /// It cannot be prepared, or does not run.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// It takes no such inputs.
    #[error(transparent)]
    Model(#[from] GraphError),
    /// What was measured is no profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// A batch on so many units.
struct Case {
    units: usize,
    batch: usize,
    moments: Moments,
    dram_bytes: f64,
}

/// Measures a model at every power of two of units and of the batch. All of these have their turns again and again, until what each
/// takes is known whatever else disturbed it for a moment. `progress` is told the share that is done.
pub fn measure(
    device: &dyn Device,
    model: &dyn LoadedModel,
    profiling: &Profiling<'_>,
    mut progress: impl FnMut(f64),
) -> Result<Profile, ProfilingError> {
    let unit_counts = bucket_sizes(profiling.units.len());
    let mut batches = bucket_sizes(profiling.largest_batch as usize);
    let mut cases: Vec<Case> = Vec::new();
    let mut memory_bytes = 0;
    let mut timed = |case: &mut Case| -> Result<bool, ProfilingError> {
        let units: UnitSet = profiling.units.iter().take(case.units).collect();
        let partition = device.partition(&units)?;
        let prepared = Buckets::prepare(&*partition, model, &[case.batch], profiling.dimensions)?;
        let dimensions = Dimensions { batch: case.batch, ..profiling.dimensions.clone() };
        let inputs = inputs(model, &dimensions)?;
        let time = profiling.time_per_case / FEWEST_MOMENTS as u32;
        case.moments.push(median_run(|| prepared.run(&inputs).map(drop), time)?);
        let report = prepared.executable_for(case.batch).report();
        memory_bytes = memory_bytes.max(report.weight_bytes + report.arena_bytes);
        case.dram_bytes = dram_bytes(report);
        Ok(prepared.is_batched())
    };
    for &units in &unit_counts {
        for (place, batch) in batches.clone().into_iter().enumerate() {
            let mut case = Case { units, batch, moments: Moments::default(), dram_bytes: 0.0 };
            let is_batched = timed(&mut case)?;
            let is_long = case.moments.shortest() > Some(LONGEST_RUN);
            cases.push(case);
            progress(first_pass_share(cases.len(), unit_counts.len() * batches.len()));
            // Fewer units come first and take longest, so that what is left out there is left out everywhere.
            if !is_batched || is_long {
                batches.truncate(place + 1);
                break;
            }
        }
    }
    cases.retain(|case| batches.contains(&case.batch));
    while cases.iter().any(|case| case.moments.is_open()) {
        let open = cases.iter_mut().filter(|case| case.moments.is_open());
        open.map(&mut timed).collect::<Result<Vec<bool>, _>>()?;
    }
    progress(1.0);
    let point = |case: &Case| ProfilePoint {
        batch: case.batch as u32,
        units: case.units as u32,
        latency: span(case.moments.shortest().unwrap_or_default()),
        dram_bytes: case.dram_bytes,
    };
    let points: Vec<ProfilePoint> = cases.iter().map(point).collect();
    Ok(Profile::new(&points, memory_bytes as u64)?)
}

/// What is done after so many of the cases had their first turn.
pub(crate) fn first_pass_share(done: usize, cases: usize) -> f64 {
    done as f64 / (cases * FEWEST_MOMENTS) as f64
}

/// What was measured, as a profile takes it.
pub(crate) fn span(latency: Duration) -> Span {
    Span::from_nanos(latency.as_nanos().clamp(1, u64::MAX.into()) as u64)
}

/// The median of several runs, after one that does not count.
pub(crate) fn median_run(
    case: impl Fn() -> Result<(), DeviceError>,
    time: Duration,
) -> Result<Duration, DeviceError> {
    let begin = Instant::now();
    let run = || {
        let start = Instant::now();
        case().map(|()| start.elapsed())
    };
    let first = run()?;
    if first > time {
        return Ok(first);
    }
    let mut runs = Vec::new();
    while runs.len() < FEWEST_RUNS || begin.elapsed() < time {
        runs.push(run()?);
    }
    runs.sort_unstable();
    Ok(runs[runs.len() / 2])
}

/// Inputs that any model takes: floats that are not all alike, and zeros where numbers may be indices.
pub(crate) fn inputs(
    model: &dyn LoadedModel,
    dimensions: &Dimensions,
) -> Result<Vec<Value>, ProfilingError> {
    let graph = model.graph();
    let shapes = graph.input_shapes(dimensions)?;
    let tensor = |(id, shape): (weft_ir::ValueId, Vec<usize>)| {
        let declared = graph.value(id).declared.as_ref();
        let data_type = declared.map_or(DataType::F32, |declared| declared.data_type);
        sample(data_type, shape)
            .map(Value::from)
            .map_err(|error| DeviceError::Failed(error.to_string()).at(model.name(), None).into())
    };
    graph.required_inputs().zip(shapes).map(tensor).collect()
}

fn sample(data_type: DataType, shape: Vec<usize>) -> Result<Tensor, OperatorError> {
    let count = shape.iter().product();
    match data_type {
        DataType::Bool => Tensor::filled(shape, false),
        DataType::I8 => Tensor::filled(shape, 0i8),
        DataType::I16 => Tensor::filled(shape, 0i16),
        DataType::I32 => Tensor::filled(shape, 0i32),
        DataType::I64 => Tensor::filled(shape, 0i64),
        DataType::U8 => Tensor::filled(shape, 0u8),
        DataType::U16 => Tensor::filled(shape, 0u16),
        DataType::U32 => Tensor::filled(shape, 0u32),
        DataType::U64 => Tensor::filled(shape, 0u64),
        DataType::String => Tensor::filled(shape, String::new()),
        data_type => {
            let float = |index: usize| (index % 17) as f32 / 8.0 - 1.0;
            Tensor::from_f32s(shape, data_type, (0..count).map(float).collect())
        }
    }
}

/// What moves: the weights read once, and the arena of activations written once and read once.
pub(crate) fn dram_bytes(report: &ExecutionReport) -> f64 {
    report.weight_bytes as f64 + 2.0 * report.arena_bytes as f64
}
