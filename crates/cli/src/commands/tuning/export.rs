//! `weft tuning export`: everything as lines of JSON.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use weft_tuner::database::{Database, DatabaseError};

use super::counted;
use crate::progress;

const EXAMPLES: &str = "\
Examples:
  weft tuning export tuning.jsonl
  weft tuning export | gzip > tuning.jsonl.gz

The first line says what the file is and how many records it has; every other one
is a record: what came of a candidate, what was picked, or the schedule of a mix.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The file to write, in the place of what it may hold; the standard output where none is named
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(super) fn run(database: &Database, options: &Options) -> Result<()> {
    let Some(file) = &options.file else {
        let exported = database.export(BufWriter::new(stdout().lock()));
        return match exported {
            // That nobody reads it to the end is no failure.
            Err(DatabaseError::Export(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(())
            }
            exported => Ok(exported.map(|_| ())?),
        };
    };
    if let (Ok(target), Ok(source)) = (fs::canonicalize(file), fs::canonicalize(database.path()))
        && target == source
    {
        bail!("{} is the database itself: name another file for the export", file.display());
    }
    let count =
        write(database, file).with_context(|| format!("cannot export to {}", file.display()))?;
    progress::note(format!("{}: {}", file.display(), counted(count, "record")));
    Ok(())
}

/// The file appears whole or not at all.
fn write(database: &Database, file: &Path) -> Result<usize> {
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(".part");
    let written = File::create(&unfinished).map_err(DatabaseError::from).and_then(|target| {
        let mut target = BufWriter::new(target);
        let count = database.export(&mut target)?;
        target.flush()?;
        fs::rename(&unfinished, file)?;
        Ok(count)
    });
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    Ok(written?)
}
