//! How much the database knows, and whether it is whole.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row};
use weft_device::Platform;

use super::error::Fault;
use super::{Database, DatabaseError, attempts, chosen, schedules, trials};

/// How much is known of a platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformSummary {
    /// Which one.
    pub platform: Platform,
    /// How many operators, precisions apart, something was picked for or tried.
    pub operators: usize,
    /// How many operators and partition sizes something was picked for.
    pub choices: usize,
    /// How many candidates have a time.
    pub measured: usize,
    /// How many candidates are wrong.
    pub wrong: usize,
    /// How many candidates cannot be run.
    pub failed: usize,
    /// How many candidates did not end.
    pub hung: usize,
    /// How many candidates ended a process that tried them, or more, and none to the end since.
    pub crashed: usize,
    /// How many mixes, numbers of units apart, a schedule was found for.
    pub schedules: usize,
    /// When anything was last recorded, in milliseconds since 1970.
    pub newest_unix_ms: u64,
}

/// Whether a count could be read.
type Add = rusqlite::Result<()>;

impl PlatformSummary {
    fn none(platform: Platform) -> Self {
        Self {
            platform,
            operators: 0,
            choices: 0,
            measured: 0,
            wrong: 0,
            failed: 0,
            hung: 0,
            crashed: 0,
            schedules: 0,
            newest_unix_ms: 0,
        }
    }

    /// How many candidates something came of.
    pub fn trials(&self) -> usize {
        self.measured + self.wrong + self.failed + self.hung
    }
}

/// How much of what the database knows is of use on a platform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Choices for this platform.
    pub choices_here: usize,
    /// Choices for others: another chip, driver or version of the kernels.
    pub choices_elsewhere: usize,
    /// Trials on this platform.
    pub trials_here: usize,
    /// Trials on others.
    pub trials_elsewhere: usize,
}

impl Database {
    /// How much is known of each platform, in the order of their names.
    pub fn summaries(&self) -> Result<Vec<PlatformSummary>, DatabaseError> {
        self.read(|transaction| {
            let mut summaries = BTreeMap::new();
            let platforms = "SELECT id, chip, driver, kernels FROM platforms";
            for_each(transaction, platforms, |row| {
                let platform =
                    Platform { chip: row.get(1)?, driver: row.get(2)?, kernels: row.get(3)? };
                summaries.insert(row.get::<_, i64>(0)?, PlatformSummary::none(platform));
                Ok(())
            })?;
            let mut count = |query: &str, add: fn(&mut PlatformSummary, &Row<'_>) -> Add| {
                for_each(transaction, query, |row| {
                    match summaries.get_mut(&row.get::<_, i64>(0)?) {
                        Some(summary) => Ok(add(summary, row)?),
                        None => Err(Fault::damaged("a row has no platform")),
                    }
                })
            };
            let operators = "SELECT platform, count(*) FROM (SELECT platform, operator FROM trials \
                 UNION SELECT platform, operator FROM choices) GROUP BY platform";
            count(operators, |summary, row| {
                summary.operators = row.get(1)?;
                Ok(())
            })?;
            let choices = "SELECT platform, count(*), max(recorded_unix_ms) FROM choices GROUP BY platform";
            count(choices, |summary, row| {
                summary.choices = row.get(1)?;
                summary.newest_unix_ms = summary.newest_unix_ms.max(row.get(2)?);
                Ok(())
            })?;
            let trials = "SELECT platform, max(recorded_unix_ms), sum(outcome = 'measured'), \
                 sum(outcome = 'wrong'), sum(outcome = 'failed'), sum(outcome = 'hung') FROM trials GROUP BY platform";
            count(trials, |summary, row| {
                summary.newest_unix_ms = summary.newest_unix_ms.max(row.get(1)?);
                summary.measured = row.get(2)?;
                summary.wrong = row.get(3)?;
                summary.failed = row.get(4)?;
                summary.hung = row.get(5)?;
                Ok(())
            })?;
            let crashed = "SELECT platform, count(*) FROM attempts WHERE crashes > 0 GROUP BY platform";
            count(crashed, |summary, row| {
                summary.crashed = row.get(1)?;
                Ok(())
            })?;
            let found = "SELECT platform, count(*), max(recorded_unix_ms) FROM schedules GROUP BY platform";
            if schedules::are_kept(transaction)? {
                count(found, |summary, row| {
                    summary.schedules = row.get(1)?;
                    summary.newest_unix_ms = summary.newest_unix_ms.max(row.get(2)?);
                    Ok(())
                })?;
            }
            let mut summaries: Vec<PlatformSummary> = summaries.into_values().collect();
            summaries.sort_by(|one, other| one.platform.cmp(&other.platform));
            Ok(summaries)
        })
    }

    /// How much of what is known is of use on a platform, and how much is not.
    pub fn coverage(&self, platform: &Platform) -> Result<Coverage, DatabaseError> {
        let mut coverage = Coverage::default();
        for summary in self.summaries()? {
            if summary.platform == *platform {
                coverage.choices_here += summary.choices;
                coverage.trials_here += summary.trials();
            } else {
                coverage.choices_elsewhere += summary.choices;
                coverage.trials_elsewhere += summary.trials();
            }
        }
        Ok(coverage)
    }

    /// Reads everything; an error where anything is not as it was written.
    pub fn check(&self) -> Result<(), DatabaseError> {
        self.read(|transaction| {
            let found: String =
                transaction.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
            if found != "ok" {
                return Err(Fault::damaged(found));
            }
            trials::rows(transaction, "TRUE", [])?;
            attempts::rows(transaction, "TRUE", [])?;
            chosen::rows(transaction, "TRUE", [])?;
            schedules::rows(transaction, "TRUE", [])?;
            Ok(())
        })
    }
}

fn for_each(
    connection: &Connection,
    query: &str,
    mut visit: impl FnMut(&Row<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        visit(row)?;
    }
    Ok(())
}
