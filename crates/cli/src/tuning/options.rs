//! Which kernels a command takes: those that were tuned, or those that are expected to be fastest.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use weft_tuner::choices::Choices;
use weft_tuner::database::{Database, DatabaseError};

use crate::device::OpenDevice;
use crate::progress;

/// Options of commands that run models.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TuningOptions {
    /// The tuning database that kernels are chosen by [default: WEFT_TUNING_DB, else tuning.db in the cache folder]
    #[arg(long, value_name = "FILE")]
    tuning_database: Option<PathBuf>,
    /// Take the kernels that are expected to be fastest, whatever was tuned
    #[arg(long, conflicts_with = "tuning_database")]
    untuned: bool,
}

/// Kernels that were tuned for the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TunedKernels {
    /// For how many operators and sizes of partitions.
    operators: usize,
    version: u64,
}

impl TunedKernels {
    /// As an addition to what is said of the device.
    pub(crate) fn in_words(self) -> String {
        format!(", kernels of {} operators tuned", self.operators)
    }

    /// Tells what was measured with these kernels from what was measured with others.
    pub(crate) fn mark(self) -> String {
        format!(", kernels {:016x}", self.version)
    }
}

impl TuningOptions {
    /// Where what is tuned would be kept; `None` where tuned kernels are left out, or there is no place.
    pub(crate) fn database(&self) -> Option<PathBuf> {
        match (self.untuned, &self.tuning_database) {
            (true, _) => None,
            (false, Some(path)) => Some(path.clone()),
            (false, None) => Database::default_path().ok(),
        }
    }

    /// Like [`Self::apply`], for those who may tune later: a database that is not there yet is only mentioned.
    pub(crate) fn apply_if_there(&self, device: &OpenDevice) -> Result<Option<TunedKernels>> {
        match &self.tuning_database {
            Some(path) if !path.exists() => {
                progress::note(format!(
                    "weft: nothing is tuned yet: there is no {}",
                    path.display()
                ));
                Ok(None)
            }
            _ => self.apply(device),
        }
    }

    /// Has the device take the kernels that were tuned for it; `None` where there are none. A database that nobody asked
    /// for and that cannot be read is only mentioned.
    pub(crate) fn apply(&self, device: &OpenDevice) -> Result<Option<TunedKernels>> {
        if self.untuned {
            return Ok(None);
        }
        let tunable = device.as_tunable();
        let load = |path: &PathBuf| {
            let database = Database::open_read_only(path)?;
            let platform = tunable.platform();
            let choices = Choices::load(&database, &platform)?;
            Ok::<_, DatabaseError>((choices, database.coverage(&platform)?))
        };
        let loaded = match &self.tuning_database {
            Some(path) => load(path)?,
            None => match Database::default_path().and_then(|path| load(&path)) {
                Ok(loaded) => loaded,
                Err(DatabaseError::Missing(_) | DatabaseError::NoFolder) => return Ok(None),
                Err(error) => {
                    progress::note(format!("weft: kernels are not tuned: {error}"));
                    return Ok(None);
                }
            },
        };
        let (choices, coverage) = loaded;
        let tuned = TunedKernels { operators: choices.len(), version: choices.version() };
        if choices.is_empty() && coverage.choices_elsewhere > 0 && self.tuning_database.is_some() {
            progress::note(format!(
                "weft: kernels are not tuned: the database has results for other chips, drivers or kernels alone ({})",
                coverage.choices_elsewhere
            ));
        }
        tunable.use_choices(Arc::new(choices));
        Ok((tuned.operators > 0).then_some(tuned))
    }
}
