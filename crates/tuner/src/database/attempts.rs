//! Which candidates are under way in which process, and which ones ended theirs.

use std::time::Duration;

use rusqlite::{Connection, Params, Transaction, params};

use super::error::Fault;
use super::identities::{self, TASK_COLUMNS, TASK_JOINS, TASK_WIDTH};
use super::record::{TaskKey, check_name, unix_ms_now};
use super::trials::is_of;
use super::{Database, DatabaseError};

/// How many processes may end while they try a candidate before it is banned. One may have been killed for reasons of its
/// own.
pub(super) const MAX_CRASHES: u32 = 2;

const OF_CANDIDATE: &str =
    "this.platform = ? AND this.operator = ? AND this.partition_size = ? AND candidate = ?";

/// Whether a candidate may be tried now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Yes: it is under way in this process from now on.
    Ours,
    /// Another process that lives is trying it.
    Elsewhere,
    /// No: too many processes ended while they tried it.
    Banned,
}

/// One row of the table of attempts.
pub(super) struct Attempt {
    pub(super) task: TaskKey,
    pub(super) candidate: String,
    /// How many processes ended in it.
    pub(super) crashes: u32,
    /// The process that it is under way in.
    process: Option<String>,
    /// When it was last begun.
    started_unix_ms: u64,
}

impl Database {
    /// Notes that this process is about to try a candidate. The note is there until [`Self::record_trial`] or
    /// [`Self::withdraw_trial`]; where the process ends before, the candidate is known to have crashed.
    pub fn start_trial(&self, task: &TaskKey, candidate: &str) -> Result<Claim, DatabaseError> {
        task.check()?;
        check_name("candidate", candidate)?;
        self.write(|transaction| {
            let identity = identities::assured(transaction, task)?;
            let earlier = find(transaction, identity, task, candidate)?;
            let mut attempt = earlier.unwrap_or_else(|| Attempt::none(task, candidate));
            let process = self.process.to_text();
            let is_elsewhere = attempt.process.as_ref().is_some_and(|other| *other != process);
            if is_elsewhere && !attempt.settle(self) {
                return Ok(Claim::Elsewhere);
            }
            let is_banned = attempt.crashes >= MAX_CRASHES;
            if !is_banned {
                attempt.process = Some(process);
                attempt.started_unix_ms = unix_ms_now();
            }
            put(transaction, identity, &attempt)?;
            Ok(if is_banned { Claim::Banned } else { Claim::Ours })
        })
    }

    /// Takes back that a candidate is under way: it was not tried to the end, through no fault of its own.
    pub fn withdraw_trial(&self, task: &TaskKey, candidate: &str) -> Result<(), DatabaseError> {
        task.check()?;
        self.write(|transaction| {
            let Some(identity) = identities::known(transaction, task)? else { return Ok(()) };
            match find(transaction, identity, task, candidate)? {
                Some(attempt) if attempt.crashes == 0 => {
                    remove(transaction, identity, task, candidate)
                }
                Some(attempt) => put(transaction, identity, &Attempt { process: None, ..attempt }),
                None => Ok(()),
            }
        })
    }

    /// Counts the candidates that are under way in processes that have ended as crashed; how many there were. Opening the
    /// database does this; so should whoever sees a process end.
    pub fn settle(&self) -> Result<usize, DatabaseError> {
        let has_ended = |attempt: &mut Attempt| attempt.settle(self);
        let is_any = self.read(|transaction| {
            Ok(rows(transaction, "process IS NOT NULL", [])?.iter_mut().any(has_ended))
        })?;
        if !is_any {
            return Ok(0);
        }
        self.write(|transaction| {
            let mut settled = rows(transaction, "process IS NOT NULL", [])?;
            settled.retain_mut(has_ended);
            for attempt in &settled {
                let identity = identities::assured(transaction, &attempt.task)?;
                put(transaction, identity, attempt)?;
            }
            Ok(settled.len())
        })
    }
}

impl Attempt {
    fn none(task: &TaskKey, candidate: &str) -> Self {
        let (task, candidate) = (task.clone(), candidate.to_string());
        Self { task, candidate, crashes: 0, process: None, started_unix_ms: unix_ms_now() }
    }

    /// Counts a crash where the process that it is under way in has ended; whether that is so.
    fn settle(&mut self, database: &Database) -> bool {
        let Some(process) = &self.process else { return false };
        let age = Duration::from_millis(unix_ms_now().saturating_sub(self.started_unix_ms));
        let has_ended = !database.process.sees_alive(process, age);
        if has_ended {
            self.crashes = self.crashes.saturating_add(1);
            self.process = None;
        }
        has_ended
    }

    fn checksum(&self) -> i64 {
        let canonical = self.task.canonical().text(&self.candidate);
        let process = self.process.as_deref().unwrap_or_default();
        canonical.number(self.crashes.into()).text(process).number(self.started_unix_ms).checksum()
    }
}

/// The rows for which an expression over the columns of `this` holds.
pub(super) fn rows(
    connection: &Connection,
    filter: &str,
    parameters: impl Params,
) -> Result<Vec<Attempt>, Fault> {
    let [candidate, crashes, process, started, sum] =
        std::array::from_fn(|column| TASK_WIDTH + column);
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {TASK_COLUMNS}, candidate, crashes, process, started_unix_ms, checksum \
         FROM attempts AS this {TASK_JOINS} WHERE {filter}"
    ))?;
    let mut found = statement.query(parameters)?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let attempt = Attempt {
            task: identities::task(row)?,
            candidate: row.get(candidate)?,
            crashes: row.get(crashes)?,
            process: row.get(process)?,
            started_unix_ms: row.get(started)?,
        };
        if row.get::<_, i64>(sum)? != attempt.checksum() {
            return Err(Fault::damaged("the checksum of an attempt does not fit it"));
        }
        rows.push(attempt);
    }
    Ok(rows)
}

fn find(
    connection: &Connection,
    (platform, operator): (i64, i64),
    task: &TaskKey,
    candidate: &str,
) -> Result<Option<Attempt>, Fault> {
    let place = params![platform, operator, task.partition_size, candidate];
    let attempt = rows(connection, OF_CANDIDATE, place)?.pop();
    attempt.map(|attempt| is_of(&attempt.task, task).map(|()| attempt)).transpose()
}

fn put(
    transaction: &Transaction<'_>,
    (platform, operator): (i64, i64),
    attempt: &Attempt,
) -> Result<(), Fault> {
    let mut statement = transaction.prepare_cached(
        "INSERT OR REPLACE INTO attempts (platform, operator, partition_size, candidate, crashes, process, \
         started_unix_ms, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    statement.execute(params![
        platform,
        operator,
        attempt.task.partition_size,
        attempt.candidate,
        attempt.crashes,
        attempt.process,
        attempt.started_unix_ms,
        attempt.checksum(),
    ])?;
    Ok(())
}

/// Takes in how many processes ended while they tried a candidate elsewhere; whether it was more than here.
pub(super) fn raise_crashes(
    transaction: &Transaction<'_>,
    identity: (i64, i64),
    task: &TaskKey,
    candidate: &str,
    crashes: u32,
) -> Result<bool, Fault> {
    let own = find(transaction, identity, task, candidate)?;
    let own = own.unwrap_or_else(|| Attempt::none(task, candidate));
    let is_more = crashes > own.crashes;
    if is_more {
        put(transaction, identity, &Attempt { crashes, ..own })?;
    }
    Ok(is_more)
}

/// Forgets that a candidate is under way, and the crashes before.
pub(super) fn remove(
    transaction: &Transaction<'_>,
    (platform, operator): (i64, i64),
    task: &TaskKey,
    candidate: &str,
) -> Result<(), Fault> {
    let mut statement = transaction.prepare_cached(
        "DELETE FROM attempts WHERE platform = ? AND operator = ? AND partition_size = ? AND candidate = ?",
    )?;
    statement.execute(params![platform, operator, task.partition_size, candidate])?;
    Ok(())
}
