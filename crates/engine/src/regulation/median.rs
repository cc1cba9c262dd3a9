//! The median time of a schedule, taken in pieces.

use std::time::{Duration, Instant};

use weft_device::{CompiledMix, DeviceError, Mix};

/// Runs that a median is taken of.
const RUNS: usize = 11;

/// Runs of one schedule, some of which may still be missing.
#[derive(Default)]
pub(super) struct MedianRun {
    times_us: Vec<f64>,
}

impl MedianRun {
    /// Runs the schedule again and again until a piece is over, at least once. The median in microseconds, where no more runs are
    /// missing.
    pub(super) fn advance(
        &mut self,
        mix: &mut dyn Mix,
        compiled: &CompiledMix,
        piece: Duration,
    ) -> Result<Option<f64>, DeviceError> {
        let start = Instant::now();
        // Something else may have run since the last piece: the first run warms up.
        mix.run_us(compiled)?;
        loop {
            self.times_us.push(mix.run_us(compiled)?);
            if self.times_us.len() >= RUNS {
                return Ok(Some(median(&self.times_us)));
            }
            if start.elapsed() >= piece {
                return Ok(None);
            }
        }
    }
}

/// The middle sample, or the mean of the two in the middle; NaN without samples.
pub(super) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count => (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(median(&[9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
