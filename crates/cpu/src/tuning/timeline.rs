//! Runs of a candidate with the control between them, and what they say.

use std::time::Duration;

use weft_device::Measurement;

use super::statistics::{lower_quartile, median, spread};

/// How many runs a measurement rests on at least.
pub(super) const LEAST_RUNS: usize = 3;

/// What was timed, in order: the control, a run, the control, and so on.
#[derive(Default)]
pub(super) struct Timeline {
    /// In seconds.
    runs: Vec<f64>,
    control: Vec<f64>,
}

impl Timeline {
    /// Notes the control and the run after it; tells how many runs there are.
    pub(super) fn push(&mut self, control: Duration, run: Duration) -> usize {
        self.control.push(control.as_secs_f64());
        self.runs.push(run.as_secs_f64());
        self.runs.len()
    }

    /// Notes the control after the last run.
    pub(super) fn end(&mut self, control: Duration) {
        self.control.push(control.as_secs_f64());
    }

    /// What the calmer half of the runs says: those before and after which the control was the least disturbed. The first
    /// quartile of them is the time, since a neighbour makes runs longer and none shorter.
    pub(super) fn measurement(&self, undisturbed: Duration) -> Measurement {
        let disturbance = self.control.windows(2).map(|pair| pair[0].max(pair[1]));
        let mut runs: Vec<(f64, f64)> = disturbance.zip(self.runs.iter().copied()).collect();
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        runs.truncate(runs.len().div_ceil(2).max(LEAST_RUNS));
        let (control, runs): (Vec<f64>, Vec<f64>) = runs.into_iter().unzip();
        Measurement {
            time: Duration::from_secs_f64(lower_quartile(&runs)),
            spread: spread(&runs),
            interference: median(&control) / undisturbed.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_beside_a_disturbed_control_counts_last() {
        let mut timeline = Timeline::default();
        let milliseconds = Duration::from_millis;
        for (control, run) in
            [(10, 100), (10, 101), (10, 102), (30, 300), (30, 310), (30, 320), (10, 103)]
        {
            timeline.push(milliseconds(control), milliseconds(run));
        }
        timeline.end(milliseconds(10));
        let measured = timeline.measurement(milliseconds(10));
        assert!((measured.time.as_secs_f64() - 0.102).abs() < 0.002, "{measured:?}");
        assert!((measured.interference - 1.0).abs() < 1e-9, "{measured:?}");
        assert!(measured.spread < 0.05, "{measured:?}");
    }

    #[test]
    fn few_runs_all_count_and_disturbance_shows() {
        let mut timeline = Timeline::default();
        for run in [1, 2, 3] {
            timeline.push(Duration::from_millis(20), Duration::from_millis(run));
        }
        timeline.end(Duration::from_millis(20));
        let measured = timeline.measurement(Duration::from_millis(10));
        assert_eq!(measured.time, Duration::from_micros(1500));
        assert_eq!(measured.interference, 2.0);
    }
}
