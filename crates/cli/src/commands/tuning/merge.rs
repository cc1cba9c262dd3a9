//! `weft tuning merge`: other databases come in.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use weft_tuner::database::{Database, DatabaseError};

use super::counted;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  weft tuning merge /mnt/lab/tuning.db
  weft tuning merge worker-*.db --database all.db

Of two results for the same candidate the one that was measured with more care
stays, then the newer one; of two choices or schedules, the newer one. A wrong
result always stays. The order of the databases makes no difference, and they are not changed.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The databases to take in
    #[arg(value_name = "OTHER", required = true)]
    others: Vec<PathBuf>,
}

pub(super) fn run(path: &Path, options: &Options) -> Result<()> {
    // Before the database is made, where there is none.
    let open = |other: &PathBuf| Database::open_read_only(other);
    let others = options.others.iter().map(open).collect::<Result<Vec<_>, DatabaseError>>()?;
    let database = Database::open(path)?;
    for other in &others {
        let merged = database.merge(other)?;
        let (read, taken) = (counted(merged.read, "record"), merged.taken);
        terminal::print(&format!("{}: {read}, {taken} taken in", other.path().display()))?;
    }
    Ok(())
}
