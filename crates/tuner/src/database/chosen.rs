//! The candidates that were picked.

use std::time::Duration;

use rusqlite::{Connection, Params, Transaction, params};
use weft_device::{OperatorKey, Platform};

use super::attempts::MAX_CRASHES;
use super::error::Fault;
use super::identities::{self, TASK_COLUMNS, TASK_JOINS, TASK_WIDTH};
use super::record::{Choice, TaskKey, nanoseconds};
use super::trials::{is_of, is_on};
use super::{Database, DatabaseError, attempts, trials};

/// What may be used on a platform.
pub(crate) struct UsableChoices {
    /// Operators, partition sizes, and the candidates that were picked.
    pub(crate) picked: Vec<(OperatorKey, usize, String)>,
    /// Those of the candidates that were picked for one size or another and must not be used at this one.
    pub(crate) banned: Vec<(OperatorKey, usize, String)>,
}

impl Database {
    /// Records what was picked for a task, in the place of what was picked before.
    pub fn record_choice(&self, task: &TaskKey, choice: &Choice) -> Result<(), DatabaseError> {
        task.check()?;
        let choice = choice.clone().plain()?;
        self.write(|transaction| {
            let identity = identities::assured(transaction, task)?;
            put(transaction, identity, task, &choice)
        })
    }

    /// What was picked for a task.
    pub fn recorded_choice(&self, task: &TaskKey) -> Result<Option<Choice>, DatabaseError> {
        task.check()?;
        self.read(|transaction| match identities::known(transaction, task)? {
            Some(identity) => find(transaction, identity, task),
            None => Ok(None),
        })
    }

    /// All that was picked, in the order of its tasks.
    pub fn recorded_choices(&self) -> Result<Vec<(TaskKey, Choice)>, DatabaseError> {
        let mut choices = self.read(|transaction| rows(transaction, "TRUE", []))?;
        choices.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(choices)
    }

    /// What was picked for a platform, and where it must not be used.
    pub(crate) fn usable_choices(
        &self,
        platform: &Platform,
    ) -> Result<UsableChoices, DatabaseError> {
        const PICKED: &str = "(this.operator, this.candidate) IN (SELECT operator, candidate FROM choices WHERE platform = ?1)";
        self.read(|transaction| {
            let mut usable = UsableChoices { picked: Vec::new(), banned: Vec::new() };
            let Some(number) = identities::platform(transaction, platform)? else {
                return Ok(usable);
            };
            for (task, choice) in rows(transaction, "this.platform = ?1", params![number])? {
                is_on(&task.platform, platform)?;
                usable.picked.push((task.operator, task.partition_size, choice.candidate));
            }
            let unusable = format!("this.platform = ?1 AND {PICKED}");
            for row in trials::unusable_rows(transaction, &unusable, params![number])? {
                is_on(&row.task.platform, platform)?;
                usable.banned.push((row.task.operator, row.task.partition_size, row.candidate));
            }
            let crashing = format!("this.platform = ?1 AND crashes >= ?2 AND {PICKED}");
            for row in attempts::rows(transaction, &crashing, params![number, MAX_CRASHES])? {
                is_on(&row.task.platform, platform)?;
                usable.banned.push((row.task.operator, row.task.partition_size, row.candidate));
            }
            Ok(usable)
        })
    }
}

/// The rows for which an expression over the columns of `this` holds.
pub(super) fn rows(
    connection: &Connection,
    filter: &str,
    parameters: impl Params,
) -> Result<Vec<(TaskKey, Choice)>, Fault> {
    let [candidate, time_ns, untuned_candidate, untuned_time_ns, trials, at, sum] =
        std::array::from_fn(|column| TASK_WIDTH + column);
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {TASK_COLUMNS}, candidate, time_ns, untuned_candidate, untuned_time_ns, trials, recorded_unix_ms, checksum \
         FROM choices AS this {TASK_JOINS} WHERE {filter}"
    ))?;
    let mut found = statement.query(parameters)?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let task = identities::task(row)?;
        let choice = Choice {
            candidate: row.get(candidate)?,
            time: Duration::from_nanos(row.get(time_ns)?),
            untuned_candidate: row.get(untuned_candidate)?,
            untuned_time: Duration::from_nanos(row.get(untuned_time_ns)?),
            trials: row.get(trials)?,
            recorded_unix_ms: row.get(at)?,
        };
        if row.get::<_, i64>(sum)? != checksum(&task, &choice) {
            return Err(Fault::damaged("the checksum of a choice does not fit it"));
        }
        rows.push((task, choice));
    }
    Ok(rows)
}

/// What was picked for a task.
pub(super) fn find(
    connection: &Connection,
    (platform, operator): (i64, i64),
    task: &TaskKey,
) -> Result<Option<Choice>, Fault> {
    let filter = "this.platform = ? AND this.operator = ? AND this.partition_size = ?";
    let row = rows(connection, filter, params![platform, operator, task.partition_size])?.pop();
    row.map(|(found, choice)| is_of(&found, task).map(|()| choice)).transpose()
}

/// Puts a choice in the place of the one that there may be.
pub(super) fn put(
    transaction: &Transaction<'_>,
    (platform, operator): (i64, i64),
    task: &TaskKey,
    choice: &Choice,
) -> Result<(), Fault> {
    let mut statement = transaction.prepare_cached(
        "INSERT OR REPLACE INTO choices (platform, operator, partition_size, candidate, time_ns, untuned_candidate, \
         untuned_time_ns, trials, recorded_unix_ms, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    statement.execute(params![
        platform,
        operator,
        task.partition_size,
        choice.candidate,
        nanoseconds(choice.time),
        choice.untuned_candidate,
        nanoseconds(choice.untuned_time),
        choice.trials,
        choice.recorded_unix_ms,
        checksum(task, choice),
    ])?;
    Ok(())
}

fn checksum(task: &TaskKey, choice: &Choice) -> i64 {
    choice.append_to(task.canonical()).checksum()
}
