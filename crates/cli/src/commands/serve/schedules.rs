//! Schedules of mixes that a server finds, and those that are known, in the tuning database.

use std::path::PathBuf;

use weft_engine::{FoundSchedule, KnownSchedules};
use weft_tuner::database::{Database, DatabaseError, RecordedSchedule, unix_ms_now};

use crate::regulation::Circumstances;

/// The tuning database, opened for as long as it takes to look or to write: mixes are rare, and other processes use it.
pub(super) struct DatabaseSchedules {
    /// None where nothing is kept.
    pub(super) database: Option<PathBuf>,
    pub(super) circumstances: Circumstances,
}

impl DatabaseSchedules {
    fn look_up(&self, likeness: &str, units: u32) -> Result<Option<String>, DatabaseError> {
        let Some(path) = self.database.as_ref().filter(|path| path.exists()) else {
            return Ok(None);
        };
        let key = self.circumstances.key(likeness, units);
        let found = Database::open_read_only(path)?.recorded_schedule(&key)?;
        Ok(found.map(|found| found.stages))
    }

    fn record(
        &self,
        likeness: &str,
        units: u32,
        found: &FoundSchedule,
    ) -> Result<(), DatabaseError> {
        let Some(path) = &self.database else { return Ok(()) };
        let schedule = RecordedSchedule {
            stages: found.stages.clone(),
            time: found.time,
            in_turns_time: found.in_turns,
            recorded_unix_ms: unix_ms_now(),
        };
        Database::open(path)?.record_schedule(&self.circumstances.key(likeness, units), &schedule)
    }
}

impl KnownSchedules for DatabaseSchedules {
    fn known(&self, likeness: &str, units: u32) -> Option<String> {
        self.look_up(likeness, units).unwrap_or_else(|error| {
            tracing::warn!(%error, "schedules that are known cannot be read");
            None
        })
    }

    fn keep(&self, likeness: &str, units: u32, found: &FoundSchedule) {
        if let Err(error) = self.record(likeness, units, found) {
            tracing::warn!(%error, "a schedule cannot be kept");
        }
    }
}
