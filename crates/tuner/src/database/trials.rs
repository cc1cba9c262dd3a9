//! What came of the candidates that were tried.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::types::Null;
use rusqlite::{Connection, Params, Row, ToSql, Transaction, params};
use weft_device::{Measurement, OperatorKey, Platform};

use super::error::Fault;
use super::identities::{self, TASK_COLUMNS, TASK_JOINS, TASK_WIDTH};
use super::record::{
    Method, Outcome, TaskKey, TrialRecord, check_name, features_from_bytes, features_to_bytes,
    nanoseconds,
};
use super::{Database, DatabaseError, attempts};

/// What is known of a candidate of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownTrial {
    /// Its name.
    pub candidate: String,
    /// What came of trying it, if that ever ended.
    pub record: Option<TrialRecord>,
    /// How many processes ended while they tried it, since it was last tried to the end. Such a candidate is best tried
    /// again while nothing else is under way in the process, so that no other one is suspected with it.
    pub crashes: u32,
}

impl KnownTrial {
    /// What one run took, where that was measured.
    pub fn time(&self) -> Option<Duration> {
        match &self.record.as_ref()?.outcome {
            Outcome::Measured(measurement) => Some(measurement.time),
            _ => None,
        }
    }

    /// It must not be tried again, nor used: it is wrong, cannot be run, or ends the processes that try it.
    pub fn is_banned(&self) -> bool {
        let is_measured = |record: &TrialRecord| matches!(record.outcome, Outcome::Measured(_));
        self.crashes >= attempts::MAX_CRASHES
            || self.record.as_ref().is_some_and(|record| !is_measured(record))
    }
}

/// A candidate whose time is known, for a model that learns from it.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredTrial {
    /// What it computes.
    pub operator: OperatorKey,
    /// How many cores or SMs the partition has that it was tried for.
    pub partition_size: usize,
    /// What its time depends on.
    pub features: Vec<f32>,
    /// How long it takes.
    pub time: Duration,
    /// How that was found.
    pub method: Method,
}

/// One row of the table of trials.
pub(super) struct TrialRow {
    pub(super) task: TaskKey,
    pub(super) candidate: String,
    pub(super) record: TrialRecord,
}

impl Database {
    /// What is known of the candidates of a task, by name.
    pub fn known_trials(&self, task: &TaskKey) -> Result<Vec<KnownTrial>, DatabaseError> {
        task.check()?;
        self.read(|transaction| {
            let Some((platform, operator)) = identities::known(transaction, task)? else {
                return Ok(Vec::new());
            };
            let place = params![platform, operator, task.partition_size];
            let filter = "this.platform = ? AND this.operator = ? AND this.partition_size = ?";
            let mut known = BTreeMap::new();
            for row in rows(transaction, filter, place)? {
                is_of(&row.task, task)?;
                let TrialRow { candidate, record, .. } = row;
                let trial =
                    KnownTrial { candidate: candidate.clone(), record: Some(record), crashes: 0 };
                known.insert(candidate, trial);
            }
            for row in attempts::rows(transaction, filter, place)? {
                is_of(&row.task, task)?;
                let name = row.candidate.clone();
                let trial = KnownTrial { candidate: row.candidate, record: None, crashes: 0 };
                known.entry(name).or_insert(trial).crashes = row.crashes;
            }
            Ok(known.into_values().collect())
        })
    }

    /// Records what came of a candidate, and that it is no longer under way. An earlier record stays where it is worth
    /// more: one of a wrong result above all, then one that was made alone.
    pub fn record_trial(
        &self,
        task: &TaskKey,
        candidate: &str,
        record: &TrialRecord,
    ) -> Result<(), DatabaseError> {
        task.check()?;
        check_name("candidate", candidate)?;
        let record = record.clone().plain()?;
        self.write(|transaction| {
            let identity = identities::assured(transaction, task)?;
            let earlier = find(transaction, identity, task, candidate)?;
            if earlier.is_none_or(|earlier| record.rank() >= earlier.rank()) {
                put(transaction, identity, task, candidate, &record)?;
            }
            attempts::remove(transaction, identity, task, candidate)
        })
    }

    /// Every candidate of a platform whose time is known.
    pub fn measured_trials(
        &self,
        platform: &Platform,
    ) -> Result<Vec<MeasuredTrial>, DatabaseError> {
        self.read(|transaction| {
            let Some(number) = identities::platform(transaction, platform)? else {
                return Ok(Vec::new());
            };
            let filter = "this.platform = ? AND this.outcome = 'measured'";
            let mut measured = Vec::new();
            for TrialRow { task, record, .. } in rows(transaction, filter, params![number])? {
                is_on(&task.platform, platform)?;
                let TrialRecord {
                    outcome: Outcome::Measured(measurement), features, method, ..
                } = record
                else {
                    return Err(Fault::damaged("a table and its index disagree"));
                };
                measured.push(MeasuredTrial {
                    operator: task.operator,
                    partition_size: task.partition_size,
                    features,
                    time: measurement.time,
                    method,
                });
            }
            Ok(measured)
        })
    }
}

/// Looking a row up by its key gave another one: not what the tables were written to hold.
pub(super) fn is_of(found: &TaskKey, asked: &TaskKey) -> Result<(), Fault> {
    let is_same = found == asked;
    is_same.then_some(()).ok_or_else(|| Fault::damaged("a row lies under another one's key"))
}

/// As [`is_of`], for a platform.
pub(super) fn is_on(found: &Platform, asked: &Platform) -> Result<(), Fault> {
    let is_same = found == asked;
    is_same.then_some(()).ok_or_else(|| Fault::damaged("a row lies under another platform's key"))
}

/// The rows for which an expression over the columns of `this` holds.
pub(super) fn rows(
    connection: &Connection,
    filter: &str,
    parameters: impl Params,
) -> Result<Vec<TrialRow>, Fault> {
    rows_from(connection, "trials AS this", filter, parameters)
}

/// As [`rows`], of candidates that must not be used; without looking at all the others.
pub(super) fn unusable_rows(
    connection: &Connection,
    filter: &str,
    parameters: impl Params,
) -> Result<Vec<TrialRow>, Fault> {
    let filter = format!("this.outcome <> 'measured' AND {filter}");
    rows_from(connection, "trials AS this INDEXED BY unusable", &filter, parameters)
}

fn rows_from(
    connection: &Connection,
    source: &str,
    filter: &str,
    parameters: impl Params,
) -> Result<Vec<TrialRow>, Fault> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {TASK_COLUMNS}, candidate, outcome, method, time_ns, spread, interference, error, reason, features, \
         recorded_unix_ms, checksum FROM {source} {TASK_JOINS} WHERE {filter}"
    ))?;
    let mut found = statement.query(parameters)?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        rows.push(read(row)?);
    }
    Ok(rows)
}

/// The record of a candidate.
pub(super) fn find(
    connection: &Connection,
    (platform, operator): (i64, i64),
    task: &TaskKey,
    candidate: &str,
) -> Result<Option<TrialRecord>, Fault> {
    let filter =
        "this.platform = ? AND this.operator = ? AND this.partition_size = ? AND candidate = ?";
    let place = params![platform, operator, task.partition_size, candidate];
    let row = rows(connection, filter, place)?.pop();
    row.map(|row| is_of(&row.task, task).map(|()| row.record)).transpose()
}

/// Puts a record in the place of the one that there may be.
pub(super) fn put(
    transaction: &Transaction<'_>,
    (platform, operator): (i64, i64),
    task: &TaskKey,
    candidate: &str,
    record: &TrialRecord,
) -> Result<(), Fault> {
    let nothing: &dyn ToSql = &Null;
    let time_ns;
    let (outcome, values): (&str, [&dyn ToSql; 5]) = match &record.outcome {
        Outcome::Measured(Measurement { time, spread, interference }) => {
            time_ns = nanoseconds(*time);
            ("measured", [&time_ns, spread, interference, nothing, nothing])
        }
        Outcome::Wrong { error } => ("wrong", [nothing, nothing, nothing, error, nothing]),
        Outcome::Failed(reason) => ("failed", [nothing, nothing, nothing, nothing, reason]),
        Outcome::Hung => ("hung", [nothing; 5]),
    };
    let [time_ns, spread, interference, error, reason] = values;
    let mut statement = transaction.prepare_cached(
        "INSERT OR REPLACE INTO trials (platform, operator, partition_size, candidate, outcome, method, time_ns, spread, \
         interference, error, reason, features, recorded_unix_ms, checksum) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    statement.execute(params![
        platform,
        operator,
        task.partition_size,
        candidate,
        outcome,
        method_name(record.method),
        time_ns,
        spread,
        interference,
        error,
        reason,
        features_to_bytes(&record.features),
        record.recorded_unix_ms,
        checksum(task, candidate, record),
    ])?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<TrialRow, Fault> {
    let [
        candidate,
        outcome,
        method,
        time_ns,
        spread,
        interference,
        error,
        reason,
        features,
        at,
        sum,
    ] = std::array::from_fn(|column| TASK_WIDTH + column);
    let task = identities::task(row)?;
    let candidate: String = row.get(candidate)?;
    let float = |column| Ok::<_, Fault>(row.get::<_, Option<f64>>(column)?.unwrap_or(f64::NAN));
    let outcome = match row.get_ref(outcome)?.as_str().unwrap_or_default() {
        "measured" => Outcome::Measured(Measurement {
            time: Duration::from_nanos(row.get(time_ns)?),
            spread: float(spread)?,
            interference: float(interference)?,
        }),
        "wrong" => Outcome::Wrong { error: float(error)? },
        "failed" => Outcome::Failed(row.get(reason)?),
        "hung" => Outcome::Hung,
        other => return Err(Fault::damaged(format!("'{other}' is no outcome of a trial"))),
    };
    let method = row.get_ref(method)?.as_str().unwrap_or_default();
    let method = method_from_name(method)
        .ok_or_else(|| Fault::damaged(format!("'{method}' is no way to try a candidate")))?;
    let features = row.get_ref(features)?.as_blob().ok().and_then(features_from_bytes);
    let features = features.ok_or_else(|| Fault::damaged("features are cut short"))?;
    let record = TrialRecord { outcome, method, features, recorded_unix_ms: row.get(at)? };
    if row.get::<_, i64>(sum)? != checksum(&task, &candidate, &record) {
        return Err(Fault::damaged("the checksum of a trial does not fit it"));
    }
    Ok(TrialRow { task, candidate, record })
}

fn checksum(task: &TaskKey, candidate: &str, record: &TrialRecord) -> i64 {
    record.append_to(task.canonical().text(candidate)).checksum()
}

pub(super) fn method_name(method: Method) -> &'static str {
    match method {
        Method::Screened => "screened",
        Method::Alone => "alone",
    }
}

pub(super) fn method_from_name(name: &str) -> Option<Method> {
    [Method::Screened, Method::Alone].into_iter().find(|&method| method_name(method) == name)
}
