//! Bringing the records of databases together: what stays does not depend on the order.

use rusqlite::Transaction;

use super::error::Fault;
use super::record::{Choice, TaskKey};
use super::schedules::{RecordedSchedule, ScheduleKey};
use super::trials::TrialRow;
use super::{Database, DatabaseError, attempts, chosen, identities, schedules, trials};

/// How many records are taken in at once, so that others who write wait for a moment only.
const MAX_RECORDS_AT_ONCE: usize = 1000;

/// All that goes from one database to another.
pub(super) enum Record {
    /// What came of a candidate.
    Trial(TrialRow),
    /// How many processes ended while they tried a candidate.
    Crashes { task: TaskKey, candidate: String, crashes: u32 },
    /// What was picked for a task.
    Choice(TaskKey, Choice),
    /// What was found for a mix.
    Schedule(ScheduleKey, RecordedSchedule),
}

/// What came of bringing records together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// How many records there were to take in.
    pub read: usize,
    /// How many of them were new, or worth more than what was there.
    pub taken: usize,
}

impl Database {
    /// Takes in what another database has. Of two records of one candidate the one of a wrong result stays, then the one
    /// that was made alone, then the later one; of two choices for one task, or two schedules for one mix, the later one. Which
    /// database is taken into which makes no difference, nor does doing it again.
    pub fn merge(&self, other: &Self) -> Result<Merged, DatabaseError> {
        self.take_in(&other.records()?)
    }

    /// Everything that another database could take in, in an order of its own.
    pub(super) fn records(&self) -> Result<Vec<Record>, DatabaseError> {
        let (mut trials, mut crashes, mut choices, mut schedules) = self.read(|transaction| {
            Ok((
                trials::rows(transaction, "TRUE", [])?,
                attempts::rows(transaction, "crashes > 0", [])?,
                chosen::rows(transaction, "TRUE", [])?,
                schedules::rows(transaction, "TRUE", [])?,
            ))
        })?;
        trials.sort_by(|one, other| {
            (&one.task, &one.candidate).cmp(&(&other.task, &other.candidate))
        });
        crashes.sort_by(|one, other| {
            (&one.task, &one.candidate).cmp(&(&other.task, &other.candidate))
        });
        choices.sort_by(|(one, _), (other, _)| one.cmp(other));
        schedules.sort_by(|(one, _), (other, _)| one.cmp(other));
        let trials = trials.into_iter().map(Record::Trial);
        let crashes = crashes.into_iter().map(|attempt| Record::Crashes {
            task: attempt.task,
            candidate: attempt.candidate,
            crashes: attempt.crashes,
        });
        let choices = choices.into_iter().map(|(task, choice)| Record::Choice(task, choice));
        let schedules = schedules.into_iter().map(|(key, found)| Record::Schedule(key, found));
        Ok(trials.chain(crashes).chain(choices).chain(schedules).collect())
    }

    /// Takes in records that keep to the limits, a few at a time: where this ends early, doing it again does the rest.
    pub(super) fn take_in(&self, records: &[Record]) -> Result<Merged, DatabaseError> {
        let mut merged = Merged { read: records.len(), taken: 0 };
        for records in records.chunks(MAX_RECORDS_AT_ONCE) {
            merged.taken += self.write(|transaction| {
                let mut taken = 0;
                for record in records {
                    taken += usize::from(take(transaction, record)?);
                }
                Ok(taken)
            })?;
        }
        Ok(merged)
    }
}

/// Takes a record in; whether it was worth more than what was there.
fn take(transaction: &Transaction<'_>, record: &Record) -> Result<bool, Fault> {
    match record {
        Record::Trial(TrialRow { task, candidate, record }) => {
            let identity = identities::assured(transaction, task)?;
            let own = trials::find(transaction, identity, task, candidate)?;
            let is_better = own.is_none_or(|own| record.precedence() > own.precedence());
            if is_better {
                trials::put(transaction, identity, task, candidate, record)?;
            }
            Ok(is_better)
        }
        Record::Crashes { task, candidate, crashes } => {
            let identity = identities::assured(transaction, task)?;
            attempts::raise_crashes(transaction, identity, task, candidate, *crashes)
        }
        Record::Choice(task, choice) => {
            let identity = identities::assured(transaction, task)?;
            let own = chosen::find(transaction, identity, task)?;
            let is_better = own.is_none_or(|own| choice.precedence() > own.precedence());
            if is_better {
                chosen::put(transaction, identity, task, choice)?;
            }
            Ok(is_better)
        }
        Record::Schedule(key, schedule) => {
            let own = schedules::find(transaction, key)?;
            let is_better = own.is_none_or(|own| schedule.precedence() > own.precedence());
            if is_better {
                schedules::put(transaction, key, schedule)?;
            }
            Ok(is_better)
        }
    }
}
