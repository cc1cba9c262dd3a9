//! The schedules by which mixes of models were found to end soonest.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Params, Transaction, params};
use weft_device::Platform;

use super::canonical::Canonical;
use super::error::Fault;
use super::record::{check_name, check_platform, nanoseconds, storable};
use super::{Database, DatabaseError, identities};

/// How long the text of a schedule may be.
const MAX_STAGES_BYTES: usize = 64 << 10;

/// What a schedule is for: a mix on so many units of one platform.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleKey {
    /// What results hold for.
    pub platform: Platform,
    /// Which models at which shapes, and all else that decides how long they take.
    pub mix: String,
    /// How many units they share; at least one.
    pub units: u32,
}

/// The schedule that was found for a mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedSchedule {
    /// Who has which units when, as whoever found it wrote it down. The database does not look into it.
    pub stages: String,
    /// How long the mix takes by it.
    pub time: Duration,
    /// How long the models take one after another.
    pub in_turns_time: Duration,
    /// When, in milliseconds since 1970.
    pub recorded_unix_ms: u64,
}

impl ScheduleKey {
    fn canonical(&self) -> Canonical {
        Canonical::default()
            .text(&self.platform.chip)
            .text(&self.platform.driver)
            .text(&self.platform.kernels)
            .text(&self.mix)
            .number(self.units.into())
    }

    pub(super) fn check(&self) -> Result<(), DatabaseError> {
        check_platform(&self.platform)?;
        check_name("mix", &self.mix)?;
        match self.units {
            0 => Err(DatabaseError::Refused("a mix on no units cannot be".into())),
            _ => Ok(()),
        }
    }
}

impl RecordedSchedule {
    /// How many times faster it is than one model after another.
    pub fn gain(&self) -> f64 {
        self.in_turns_time.as_secs_f64() / self.time.as_secs_f64()
    }

    /// The schedule as it will be read back.
    pub(super) fn plain(mut self) -> Result<Self, DatabaseError> {
        let length = self.stages.len();
        if length > MAX_STAGES_BYTES {
            let refusal = format!("a schedule has {length} bytes and may have {MAX_STAGES_BYTES}");
            return Err(DatabaseError::Refused(refusal));
        }
        self.time = storable(self.time);
        self.in_turns_time = storable(self.in_turns_time);
        self.recorded_unix_ms = self.recorded_unix_ms.min(i64::MAX as u64);
        Ok(self)
    }

    /// Of two schedules for one mix from two databases, the one that stays is the greater by this: the later one.
    pub(super) fn precedence(&self) -> (u64, Vec<u8>) {
        (self.recorded_unix_ms, self.append_to(Canonical::default()).into_bytes())
    }

    fn append_to(&self, canonical: Canonical) -> Canonical {
        canonical
            .text(&self.stages)
            .number(nanoseconds(self.time))
            .number(nanoseconds(self.in_turns_time))
            .number(self.recorded_unix_ms)
    }
}

impl Database {
    /// Records what was found for a mix, in the place of what was found before.
    pub fn record_schedule(
        &self,
        key: &ScheduleKey,
        schedule: &RecordedSchedule,
    ) -> Result<(), DatabaseError> {
        key.check()?;
        let schedule = schedule.clone().plain()?;
        self.write(|transaction| put(transaction, key, &schedule))
    }

    /// What was found for a mix.
    pub fn recorded_schedule(
        &self,
        key: &ScheduleKey,
    ) -> Result<Option<RecordedSchedule>, DatabaseError> {
        key.check()?;
        self.read(|transaction| find(transaction, key))
    }

    /// All that was found, in the order of its mixes.
    pub fn recorded_schedules(
        &self,
    ) -> Result<Vec<(ScheduleKey, RecordedSchedule)>, DatabaseError> {
        let mut schedules = self.read(|transaction| rows(transaction, "TRUE", []))?;
        schedules.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(schedules)
    }
}

/// Whether there is a table of them: a file of the first version that is only read has none.
pub(super) fn are_kept(connection: &Connection) -> Result<bool, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schedules'",
    )?;
    Ok(statement.query_row([], |_| Ok(())).optional()?.is_some())
}

/// The rows for which an expression over the columns of `this` holds.
pub(super) fn rows(
    connection: &Connection,
    filter: &str,
    parameters: impl Params,
) -> Result<Vec<(ScheduleKey, RecordedSchedule)>, Fault> {
    if !are_kept(connection)? {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(&format!(
        "SELECT chip, driver, kernels, mix, units, stages, time_ns, in_turns_time_ns, recorded_unix_ms, checksum \
         FROM schedules AS this LEFT JOIN platforms ON platforms.id = this.platform WHERE {filter}"
    ))?;
    let mut found = statement.query(parameters)?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let platform = Platform { chip: row.get(0)?, driver: row.get(1)?, kernels: row.get(2)? };
        let key = ScheduleKey { platform, mix: row.get(3)?, units: row.get(4)? };
        let schedule = RecordedSchedule {
            stages: row.get(5)?,
            time: Duration::from_nanos(row.get(6)?),
            in_turns_time: Duration::from_nanos(row.get(7)?),
            recorded_unix_ms: row.get(8)?,
        };
        if row.get::<_, i64>(9)? != checksum(&key, &schedule) {
            return Err(Fault::damaged("the checksum of a schedule does not fit it"));
        }
        rows.push((key, schedule));
    }
    Ok(rows)
}

/// What was found for a mix.
pub(super) fn find(
    connection: &Connection,
    key: &ScheduleKey,
) -> Result<Option<RecordedSchedule>, Fault> {
    let Some(platform) = identities::platform(connection, &key.platform)? else { return Ok(None) };
    let filter = "this.platform = ? AND mix = ? AND units = ?";
    match rows(connection, filter, params![platform, key.mix, key.units])?.pop() {
        Some((found, _)) if found != *key => {
            Err(Fault::damaged("a schedule lies under another one's key"))
        }
        row => Ok(row.map(|(_, schedule)| schedule)),
    }
}

/// Puts a schedule in the place of the one that there may be.
pub(super) fn put(
    transaction: &Transaction<'_>,
    key: &ScheduleKey,
    schedule: &RecordedSchedule,
) -> Result<(), Fault> {
    let platform = identities::assured_platform(transaction, &key.platform)?;
    let mut statement = transaction.prepare_cached(
        "INSERT OR REPLACE INTO schedules (platform, mix, units, stages, time_ns, in_turns_time_ns, recorded_unix_ms, \
         checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    statement.execute(params![
        platform,
        key.mix,
        key.units,
        schedule.stages,
        nanoseconds(schedule.time),
        nanoseconds(schedule.in_turns_time),
        schedule.recorded_unix_ms,
        checksum(key, schedule),
    ])?;
    Ok(())
}

fn checksum(key: &ScheduleKey, schedule: &RecordedSchedule) -> i64 {
    schedule.append_to(key.canonical()).checksum()
}
