//! The schedule that the tuning database keeps for a mix.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use weft_engine::regulation::{Outcome, Way, read_stages, write_stages};
use weft_scheduler::regulate::{Mix, Stages};
use weft_tuner::database::{Database, DatabaseError, RecordedSchedule, ScheduleKey, unix_ms_now};

use crate::date::day;
use crate::progress;

#[derive(Args)]
pub(super) struct DatabaseOptions {
    /// The tuning database that schedules are kept in [default: WEFT_TUNING_DB, else tuning.db in the cache folder]
    #[arg(long, value_name = "FILE")]
    database: Option<PathBuf>,
    /// Search without what was found before, and keep nothing
    #[arg(long, conflicts_with = "database")]
    no_database: bool,
}

/// A place for the schedule of a mix, with the one that is there.
pub(super) struct Kept {
    key: ScheduleKey,
    /// None where nothing is kept.
    database: Option<Database>,
    found: Option<RecordedSchedule>,
}

impl DatabaseOptions {
    /// What is known of a mix. A database that nobody asked for and that cannot be used is only mentioned.
    pub(super) fn look_up(&self, key: ScheduleKey) -> Result<Kept> {
        let nothing = |key| Kept { key, database: None, found: None };
        if self.no_database {
            return Ok(nothing(key));
        }
        let look = |path: &Path| {
            let database = opened(path)?;
            let found = database.recorded_schedule(&key)?;
            Ok::<_, DatabaseError>((database, found))
        };
        let looked = match &self.database {
            Some(path) => look(path)?,
            None => match Database::default_path().and_then(|path| look(&path)) {
                Ok(looked) => looked,
                Err(DatabaseError::NoFolder) => return Ok(nothing(key)),
                Err(error) => {
                    progress::note(format!("weft: the schedule is not kept: {error}"));
                    return Ok(nothing(key));
                }
            },
        };
        let (database, found) = looked;
        Ok(Kept { key, database: Some(database), found })
    }
}

/// For writing, or for reading where that is all that can be done.
fn opened(path: &Path) -> Result<Database, DatabaseError> {
    match Database::open(path) {
        Err(error @ DatabaseError::Unwritable { .. }) => {
            Database::open_read_only(path).map_err(|_| error)
        }
        opened => opened,
    }
}

impl Kept {
    /// The stages that are known of the mix as it was timed now. That they do not fit it is said.
    pub(super) fn stages(&self, mix: &Mix) -> Option<Stages> {
        let found = self.found.as_ref()?;
        match read_stages(&found.stages, mix) {
            Ok(stages) => Some(stages),
            Err(why) => {
                let since = day(found.recorded_unix_ms);
                progress::note(format!(
                    "weft: the schedule that is known since {since} is not used: {why}"
                ));
                None
            }
        }
    }

    /// Since when what came of the mix is known, in milliseconds since 1970; `None` where it was found now.
    pub(super) fn since_unix_ms(&self, outcome: &Outcome) -> Option<u64> {
        self.found.as_ref().filter(|_| outcome.is_known).map(|found| found.recorded_unix_ms)
    }

    /// Where the schedule comes from, in words.
    pub(super) fn origin(&self, outcome: &Outcome) -> String {
        match self.since_unix_ms(outcome) {
            Some(unix_ms) => format!("known since {}, run again", day(unix_ms)),
            None => "found now".to_string(),
        }
    }

    /// Keeps what was found now: nothing was known that fits, or it was faster in the same rounds.
    pub(super) fn keep(&self, outcome: &Outcome) -> Result<()> {
        let Some(database) = self.database.as_ref().filter(|_| !outcome.is_known) else {
            return Ok(());
        };
        let time = |way: Way| Duration::from_secs_f64(outcome.time_us(way).max(0.0) / 1e6);
        let schedule = RecordedSchedule {
            stages: write_stages(&outcome.stages, &outcome.mix),
            time: time(Way::Regulated),
            in_turns_time: time(Way::InTurns),
            recorded_unix_ms: unix_ms_now(),
        };
        // What was found is of use all the same.
        if let Err(error) = database.record_schedule(&self.key, &schedule) {
            progress::note(format!("weft: the schedule is not kept: {error}"));
        }
        Ok(())
    }
}
