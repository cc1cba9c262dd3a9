//! Forgetting what is of no more use.

use rusqlite::{Params, Transaction, TransactionBehavior, params};
use weft_device::Platform;

use super::error::Fault;
use super::{Database, DatabaseError, identities};

/// What to forget. What is under way stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prune {
    /// All that holds for a platform.
    Platform(Platform),
    /// All that was recorded before an instant, in milliseconds since 1970.
    RecordedBefore(u64),
    /// That candidates are wrong, cannot be run, hang or crash: they may be tried again.
    Banned,
}

/// How much was forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// What came of candidates, crashes included.
    pub trials: usize,
    /// What was picked.
    pub choices: usize,
    /// What was found for mixes.
    pub schedules: usize,
}

impl Database {
    /// Forgets all that any of `what` names, and hands the space back to the disk.
    pub fn prune(&self, what: &[Prune]) -> Result<Pruned, DatabaseError> {
        let pruned = self.write(|transaction| {
            let pruned = remove(transaction, what)?;
            remove_names(transaction)?;
            Ok(pruned)
        })?;
        let connection = self.connection();
        let shrink = || {
            let mut vacuum = connection.prepare("PRAGMA incremental_vacuum")?;
            let mut pages = vacuum.query([])?;
            while pages.next()?.is_some() {}
            // Where others read meanwhile, this is left to whoever closes the file last.
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        };
        shrink().map_err(|error| Fault::from(error).at(&self.path, self.max_wait))?;
        Ok(pruned)
    }

    /// What [`Self::prune`] would forget.
    pub fn rehearse_prune(&self, what: &[Prune]) -> Result<Pruned, DatabaseError> {
        let mut connection = self.connection();
        let mut rehearse = || {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let pruned = remove(&transaction, what)?;
            transaction.rollback()?;
            Ok(pruned)
        };
        rehearse().map_err(|fault: Fault| fault.at(&self.path, self.max_wait))
    }
}

fn remove(transaction: &Transaction<'_>, what: &[Prune]) -> Result<Pruned, Fault> {
    let mut pruned = Pruned::default();
    for what in what {
        match what {
            Prune::Platform(platform) => {
                let Some(number) = identities::platform(transaction, platform)? else { continue };
                let of = |table| delete(transaction, table, "platform = ?", params![number]);
                pruned.trials += of("trials")? + of("attempts")?;
                pruned.choices += of("choices")?;
                pruned.schedules += of("schedules")?;
            }
            Prune::RecordedBefore(unix_ms) => {
                let instant = params![(*unix_ms).min(i64::MAX as u64)];
                let old = "recorded_unix_ms < ?";
                let idle = "process IS NULL AND started_unix_ms < ?";
                pruned.trials += delete(transaction, "trials", old, instant)?;
                pruned.trials += delete(transaction, "attempts", idle, instant)?;
                pruned.choices += delete(transaction, "choices", old, instant)?;
                pruned.schedules += delete(transaction, "schedules", old, instant)?;
            }
            Prune::Banned => {
                pruned.trials += delete(transaction, "trials", "outcome <> 'measured'", [])?;
                pruned.trials += delete(transaction, "attempts", "process IS NULL", [])?;
            }
        }
    }
    Ok(pruned)
}

fn delete(
    transaction: &Transaction<'_>,
    table: &str,
    filter: &str,
    parameters: impl Params,
) -> Result<usize, Fault> {
    Ok(transaction.execute(&format!("DELETE FROM {table} WHERE {filter}"), parameters)?)
}

/// Removes the names that nothing stands under any more.
fn remove_names(transaction: &Transaction<'_>) -> Result<(), Fault> {
    const OF_OPERATORS: [&str; 3] = ["trials", "attempts", "choices"];
    const OF_PLATFORMS: [&str; 4] = ["trials", "attempts", "choices", "schedules"];
    for (names, column, tables) in
        [("platforms", "platform", &OF_PLATFORMS[..]), ("operators", "operator", &OF_OPERATORS)]
    {
        let used = tables.iter().map(|table| format!("SELECT {column} FROM {table}"));
        let used: Vec<String> = used.collect();
        delete(transaction, names, &format!("id NOT IN ({})", used.join(" UNION ")), [])?;
    }
    Ok(())
}
