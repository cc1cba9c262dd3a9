//! The tuning database: what was tried, what came of it, what was picked, and how mixes share a device, in one file
//! that processes share.

mod attempts;
mod canonical;
mod chosen;
mod error;
mod exchange;
mod identities;
mod location;
mod merge;
mod opening;
mod process;
mod prune;
mod record;
mod schedules;
mod schema;
mod summary;
mod trials;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};

pub use attempts::Claim;
pub use error::DatabaseError;
pub use merge::Merged;
pub use prune::{Prune, Pruned};
pub use record::{Choice, Method, Outcome, TaskKey, TrialRecord, unix_ms_now};
pub use schedules::{RecordedSchedule, ScheduleKey};
pub use summary::{Coverage, PlatformSummary};
pub use trials::{KnownTrial, MeasuredTrial};

use error::Fault;
use process::Process;

/// A handle on a tuning database.
///
/// Any number of processes and threads may each have handles on the same file, and threads may share one. A process that
/// is killed loses what it had not recorded yet and nothing else: what a call has recorded is with the operating
/// system when the call returns. A machine that loses power may lose the last recordings, and the file stays whole: a trial
/// can be repeated, and waiting for the disk after each would cost more than many trials take.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    max_wait: Duration,
    process: Process,
    connection: Mutex<Connection>,
}

impl Database {
    fn of(path: &Path, max_wait: Duration, connection: Connection) -> Self {
        let path = path.to_path_buf();
        Self { path, max_wait, process: Process::current(), connection: Mutex::new(connection) }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A transaction that a panic cut short was rolled back when it was dropped.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads in one transaction, which sees one state of the database.
    fn read<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, DatabaseError> {
        self.transact(TransactionBehavior::Deferred, work)
    }

    /// Writes in one transaction, which happens as a whole or not at all.
    fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, DatabaseError> {
        self.transact(TransactionBehavior::Immediate, work)
    }

    fn transact<T>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, DatabaseError> {
        let mut connection = self.connection();
        let run = || {
            let transaction = connection.transaction_with_behavior(behavior)?;
            let result = work(&transaction)?;
            transaction.commit()?;
            Ok(result)
        };
        run().map_err(|fault: Fault| fault.at(&self.path, self.max_wait))
    }
}
