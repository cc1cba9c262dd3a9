//! A partition on which candidates are checked and timed.

use std::sync::Arc;
use std::time::Duration;

use weft_device::{Bench, DeviceError, Measurement, Trial, TunableOperator};

use super::control::Control;
use super::operator::CudaOperator;
use super::part::part_of;
use super::trial_memory::{Expected, TrialMemory, tolerance};
use crate::bound_work::BoundWork;
use crate::driver::{CudaError, Event, Stream};
use crate::gpu::Gpu;
use crate::launch::{Candidate, Launch};
use crate::partition::Lane;
use crate::timing::record;

/// Repetitions in one graph.
const MAX_REPETITIONS: usize = 128;
/// The same where a library is called, which takes the host longer than a launch.
const MAX_CALL_REPETITIONS: usize = 24;

/// What one sample should take at least, in microseconds, so that what lies between two of them does not count, and so
/// that few calls of the driver do: benches beside each other wait for each other there. It is less where there is no time
/// for so long ones.
const SAMPLE_US: f64 = 1000.0;

/// Samples of one candidate: at least as many as a median and quartiles need.
const SAMPLES: std::ops::RangeInclusive<usize> = 5..=63;

/// Runs by which it is found how long one takes.
const ESTIMATING_RUNS: usize = 2;

/// Samples of the control kernel when nothing else runs.
const CONTROL_SAMPLES: usize = 21;

/// One partition.
pub(super) struct CudaBench {
    /// Keeps the partition in being.
    lane: Arc<Lane>,
    gpu: Arc<Gpu>,
    /// Not the stream that batches run in, so that they wait for no trial.
    stream: Stream,
    memory: TrialMemory,
    control: Control,
    control_alone_us: f64,
    /// Between which work is timed.
    marks: Vec<Event>,
}

impl CudaBench {
    /// A bench on the partition of a lane; nothing else must run on the GPU meanwhile.
    pub(super) fn new(gpu: &Arc<Gpu>, lane: Arc<Lane>) -> Result<Self, CudaError> {
        let stream = lane.stream().beside()?;
        let mut bench = Self {
            memory: TrialMemory::new(&stream)?,
            control: Control::new(gpu, &stream)?,
            control_alone_us: 0.0,
            marks: (0..2 * SAMPLES.end() + 2)
                .map(|_| Event::with_timing(&stream))
                .collect::<Result<_, _>>()?,
            lane,
            gpu: gpu.clone(),
            stream,
        };
        bench.control_alone_us = bench.time_control()?;
        Ok(bench)
    }

    fn time_control(&self) -> Result<f64, CudaError> {
        let marks = &self.marks[..=CONTROL_SAMPLES];
        self.control.graph.launch(&self.stream)?;
        for mark in marks {
            mark.record(&self.stream)?;
            self.control.graph.launch(&self.stream)?;
        }
        self.memory.wait(&self.stream)?;
        let times = (0..CONTROL_SAMPLES).map(|sample| self.after_us(sample));
        Ok(quartiles(times.collect::<Result<_, _>>()?)[1])
    }

    /// The time from the mark of a number to the next one.
    fn after_us(&self, mark: usize) -> Result<f64, CudaError> {
        self.marks[mark + 1].elapsed_us_since(&self.marks[mark])
    }

    fn try_cuda(
        &mut self,
        operator: &CudaOperator,
        candidate: &Candidate,
        effort: Duration,
    ) -> Result<Trial, CudaError> {
        let memory = &mut self.memory;
        let stream = &self.stream;
        let expected = operator.expected.get_or_init(|| Expected::new(operator, memory, stream));
        let expected = expected.as_ref().map_err(CudaError::clone)?;
        let (sms, all) = (self.lane.partition.sm_count(), operator.sm_count);
        // Checked and timed as batches run it, also where trials are in the background.
        let as_served = |launch: &Launch| launch.staying_on(sms.min(all));
        // SAFETY: the operator outlives the trial, and the memory is this bench's own.
        let whole = unsafe { memory.bind(operator, expected, candidate, stream, as_served) }?;
        // SAFETY: as above.
        let difference = unsafe {
            memory.clear(operator, &whole, stream)?;
            for (index, work) in whole.work.iter().enumerate() {
                let follows_launch = index > 0 && whole.work[index - 1].is_launch();
                work.add_to(stream, follows_launch)?;
            }
            memory.difference(operator, expected, &whole, stream)
        }?;
        if memory.has_fault() {
            return Ok(Trial::Failed("the kernel refused its input".to_string()));
        }
        let (norm, largest) = tolerance(operator.precision);
        // Written so that it holds for numbers alone.
        let is_right = difference.of_norms() <= norm && difference.of_largest() <= largest;
        if !is_right {
            return Ok(Trial::Wrong { error: difference.of_norms().max(difference.of_largest()) });
        }
        if sms >= all || candidate.library_call.is_some() {
            return Ok(Trial::Measured(self.time(&whole.work, effort)?));
        }
        let shape = |launch: &Launch| part_of(launch, sms, all);
        let (memory, stream) = (&mut self.memory, &self.stream);
        // SAFETY: as above.
        let part = unsafe { memory.bind(operator, expected, candidate, stream, shape) }?;
        Ok(Trial::Measured(self.time(&part.work, effort)?))
    }

    /// Times work in samples between which the control kernel runs. All is given to the stream at once, so that it does
    /// not matter when the host gets its turn.
    fn time(&self, work: &[BoundWork], effort: Duration) -> Result<Measurement, CudaError> {
        let _timing = self.gpu.kernels.time();
        let stream = &self.stream;
        let marks = &self.marks;
        marks[0].record(stream)?;
        for work in (0..ESTIMATING_RUNS).flat_map(|_| work) {
            // SAFETY: the work and its memory outlive this call, which waits for all that it starts.
            unsafe { work.add_to(stream, false) }?;
        }
        marks[1].record(stream)?;
        self.memory.wait(stream)?;
        let run_us = (self.after_us(0)? / ESTIMATING_RUNS as f64).max(0.5);
        let most = match work.iter().all(BoundWork::is_launch) {
            true => MAX_REPETITIONS,
            false => MAX_CALL_REPETITIONS,
        };
        let effort_us = effort.as_secs_f64() * 1e6;
        let longest_us = effort_us / *SAMPLES.start() as f64 - self.control_alone_us;
        let repetitions = ((SAMPLE_US.min(longest_us) / run_us) as usize).clamp(1, most);
        let sample_us = run_us * repetitions as f64 + self.control_alone_us;
        let samples = (effort_us / sample_us) as usize;
        let samples = samples.clamp(*SAMPLES.start(), *SAMPLES.end());
        // SAFETY: as above.
        let graph = unsafe { record(stream, work, repetitions) }?;
        graph.launch(stream)?;
        for sample in 0..samples {
            marks[2 * sample].record(stream)?;
            self.control.graph.launch(stream)?;
            marks[2 * sample + 1].record(stream)?;
            graph.launch(stream)?;
        }
        marks[2 * samples].record(stream)?;
        self.memory.wait(stream)?;
        let every_other = |first: usize| {
            let times = (0..samples).map(|sample| self.after_us(2 * sample + first));
            times.collect::<Result<Vec<f64>, CudaError>>().map(quartiles)
        };
        let [lower, median, upper] = every_other(1)?;
        let [_, control_us, _] = every_other(0)?;
        Ok(Measurement {
            time: Duration::from_secs_f64(median / repetitions as f64 / 1e6),
            spread: (upper - lower) / median,
            interference: control_us / self.control_alone_us,
        })
    }
}

impl Bench for CudaBench {
    fn try_candidate(
        &mut self,
        operator: &dyn TunableOperator,
        candidate: usize,
        effort: Duration,
    ) -> Result<Trial, DeviceError> {
        let Some(operator) = operator.as_any().downcast_ref::<CudaOperator>() else {
            return Ok(Trial::Failed("the operator is one of another device".to_string()));
        };
        let Some(candidate) = operator.candidates.get(candidate) else {
            return Ok(Trial::Failed(format!("there is no candidate {candidate}")));
        };
        match self.try_cuda(operator, candidate, effort) {
            Ok(trial) => Ok(trial),
            Err(error) if error.is_lost() => Err(error.into()),
            // One candidate that cannot run leaves the others.
            Err(error) => Ok(Trial::Failed(error.to_string())),
        }
    }
}

/// The first quartile, the median and the third quartile of at least one number.
fn quartiles(mut times: Vec<f64>) -> [f64; 3] {
    times.sort_by(f64::total_cmp);
    let at = |quarter: usize| times[(times.len() - 1) * quarter / 4];
    [at(1), at(2), at(3)]
}

#[cfg(test)]
mod tests {
    use super::quartiles;

    #[test]
    fn quartiles_are_those_of_the_sorted_times() {
        assert_eq!(quartiles(vec![5.0, 1.0, 4.0, 2.0, 3.0]), [2.0, 3.0, 4.0]);
        assert_eq!(quartiles(vec![7.0]), [7.0; 3]);
    }
}
