//! `weft tuning import`: what was exported comes in.

use std::fs::File;
use std::io::{BufRead, BufReader, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use weft_tuner::database::Database;

use super::counted;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  weft tuning import tuning.jsonl
  zcat tuning.jsonl.gz | weft tuning import -

Each file is read and checked to its end before anything of it is taken in. What
is known already stays where it is newer or was measured with more care.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// What `weft tuning export` wrote; - is the standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub(super) fn run(path: &Path, options: &Options) -> Result<()> {
    // Before the database is made, where there is none.
    let sources: Vec<(&PathBuf, Box<dyn BufRead>)> =
        options.files.iter().map(|file| Ok((file, open(file)?))).collect::<Result<_>>()?;
    let database = Database::open(path)?;
    for (file, source) in sources {
        let name = file.display();
        let merged = database.import(source).with_context(|| format!("cannot import {name}"))?;
        let (read, taken) = (counted(merged.read, "record"), merged.taken);
        terminal::print(&format!("{name}: {read}, {taken} taken in"))?;
    }
    Ok(())
}

fn open(file: &Path) -> Result<Box<dyn BufRead>> {
    if file.as_os_str() == "-" {
        return Ok(Box::new(stdin().lock()));
    }
    let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Box::new(BufReader::new(opened)))
}
