//! Tasks, records and choices to try things with.

use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use weft_device::{Measurement, OperatorKey, Platform};
use weft_tuner::database::{
    Choice, Method, Outcome, RecordedSchedule, ScheduleKey, TaskKey, TrialRecord,
};

/// A folder that is removed when the test ends, and the name of a file in it.
pub(crate) fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tuning.db");
    (folder, path)
}

pub(crate) fn platform(chip: &str) -> Platform {
    Platform { chip: chip.into(), driver: "580.1".into(), kernels: "k1".into() }
}

pub(crate) fn operator(name: &str) -> OperatorKey {
    OperatorKey { operator: name.into(), precision: "f16".into() }
}

/// An operator on a partition of the chip `here`.
pub(crate) fn task(name: &str, partition_size: usize) -> TaskKey {
    TaskKey { platform: platform("here"), operator: operator(name), partition_size }
}

pub(crate) fn measured(time_us: u64, method: Method) -> TrialRecord {
    let time = Duration::from_micros(time_us);
    let measurement = Measurement { time, spread: 0.02, interference: 1.01 };
    TrialRecord::now(Outcome::Measured(measurement), method, &[1.0, time_us as f32])
}

pub(crate) fn choice(candidate: &str, time_us: u64) -> Choice {
    Choice {
        candidate: candidate.into(),
        time: Duration::from_micros(time_us),
        untuned_candidate: "plain".into(),
        untuned_time: Duration::from_micros(2 * time_us),
        trials: 12,
        recorded_unix_ms: 1_700_000_000_000,
    }
}

/// A mix on the chip `here`.
pub(crate) fn mix(mix: &str, units: u32) -> ScheduleKey {
    ScheduleKey { platform: platform("here"), mix: mix.into(), units }
}

pub(crate) fn schedule(stages: &str, time_us: u64) -> RecordedSchedule {
    RecordedSchedule {
        stages: stages.into(),
        time: Duration::from_micros(time_us),
        in_turns_time: Duration::from_micros(3 * time_us),
        recorded_unix_ms: 1_700_000_000_000,
    }
}
