//! How long launches and library calls take on a partition.

use crate::bound_work::BoundWork;
use crate::driver::{CudaError, Event, GraphExec, Stream, capture};

/// Repetitions in one graph: enough that what lies between two graphs does not count.
const MAX_REPETITIONS: usize = 20;

/// What one graph of repetitions should take at most, in microseconds.
const GRAPH_US: f64 = 500.0;

/// Graphs that are timed.
const SAMPLES: usize = 5;

/// Two marks around work in a stream.
struct Stopwatch<'a> {
    stream: &'a Stream,
    start: Event,
    end: Event,
}

impl<'a> Stopwatch<'a> {
    fn new(stream: &'a Stream) -> Result<Self, CudaError> {
        Ok(Self { stream, start: Event::with_timing(stream)?, end: Event::with_timing(stream)? })
    }

    /// Runs a graph, and says how long it took in microseconds.
    fn time_us(&self, graph: &GraphExec) -> Result<f64, CudaError> {
        self.start.record(self.stream)?;
        graph.launch(self.stream)?;
        self.end.record(self.stream)?;
        self.end.synchronize()?;
        self.end.elapsed_us_since(&self.start)
    }
}

/// Records work, many times over.
///
/// # Safety
/// The work, and the memory at its addresses, live as long as the graph.
pub(crate) unsafe fn record(
    stream: &Stream,
    work: &[BoundWork],
    repetitions: usize,
) -> Result<GraphExec, CudaError> {
    capture(stream, |stream| {
        let mut follows_launch = false;
        for work in (0..repetitions).flat_map(|_| work) {
            // SAFETY: the caller vouches for it.
            unsafe { work.add_to(stream, follows_launch) }?;
            follows_launch = work.is_launch();
        }
        Ok(())
    })
}

/// The median time of one run of all the work, in microseconds; it is run many times over.
///
/// # Safety
/// The memory at the work's addresses lives, and nothing else uses it meanwhile.
pub(crate) unsafe fn median_us(stream: &Stream, work: &[BoundWork]) -> Result<f64, CudaError> {
    if work.is_empty() {
        return Ok(0.0);
    }
    let stopwatch = Stopwatch::new(stream)?;
    // SAFETY: the work outlives the graph, which has run when this function returns; the caller vouches for the
    // memory.
    let once = unsafe { record(stream, work, 1) }?;
    stopwatch.time_us(&once)?;
    let estimate_us = stopwatch.time_us(&once)?;
    let repetitions = repetitions(estimate_us);
    // SAFETY: as above.
    let graph = unsafe { record(stream, work, repetitions) }?;
    stopwatch.time_us(&graph)?;
    let mut samples =
        (0..SAMPLES).map(|_| stopwatch.time_us(&graph)).collect::<Result<Vec<f64>, CudaError>>()?;
    samples.sort_by(f64::total_cmp);
    Ok(samples[SAMPLES / 2] / repetitions as f64)
}

/// How many runs of this length one graph has.
fn repetitions(run_us: f64) -> usize {
    ((GRAPH_US / run_us.max(1.0)) as usize).clamp(1, MAX_REPETITIONS)
}

#[cfg(test)]
mod tests {
    use super::repetitions;

    #[test]
    fn short_runs_are_repeated_and_long_ones_are_not() {
        for (run_us, expected) in [(0.0, 20), (5.0, 20), (100.0, 5), (400.0, 1), (1e6, 1)] {
            assert_eq!(repetitions(run_us), expected, "{run_us} us");
        }
    }
}
