//! `weft tuning`: what is in the tuning database, and what people do with it.

mod age;
mod dump;
mod export;
mod import;
mod list;
mod merge;
mod prune;
mod schedules;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use weft_device::Platform;
use weft_tuner::database::{Database, DatabaseError};

const ABOUT: &str = "\
Without --database, the database is the file that WEFT_TUNING_DB names, or
tuning.db in WEFT_CACHE_DIR, or in $XDG_CACHE_HOME/weft, or in ~/.cache/weft.
Processes may tune, serve and look at one database at the same time.

Exit code: 2 when a file or an argument is not usable.";

#[derive(Args)]
#[command(after_help = ABOUT)]
pub(crate) struct Options {
    /// The tuning database, where it is not the usual one
    #[arg(long, value_name = "FILE", global = true)]
    database: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show where the database lies and how much it knows of each platform, and check that it is whole
    List(list::Options),
    /// Show what was picked: operator, partition size, candidate, time, gain against untuned; or the schedules of mixes
    Dump(dump::Options),
    /// Write everything as lines of JSON
    Export(export::Options),
    /// Take in what was exported, here or on another machine
    Import(import::Options),
    /// Take in other databases
    Merge(merge::Options),
    /// Forget what is of no more use
    Prune(prune::Options),
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let path = match &options.database {
        Some(path) => path.clone(),
        None => Database::default_path()?,
    };
    match &options.command {
        Command::List(options) => list::run(&Database::open_read_only(&path)?, options),
        Command::Dump(options) => dump::run(&Database::open_read_only(&path)?, options),
        Command::Export(options) => export::run(&Database::open_read_only(&path)?, options),
        Command::Import(options) => import::run(&path, options),
        Command::Merge(options) => merge::run(&path, options),
        Command::Prune(_) if !path.exists() => Err(DatabaseError::Missing(path).into()),
        Command::Prune(options) => prune::run(&Database::open(&path)?, options),
    }
}

/// Whether the chip of a platform is called so, or a part of its name is.
fn is_called(platform: &Platform, text: &str) -> bool {
    platform.chip.to_lowercase().contains(&text.to_lowercase())
}

/// A count and what is counted.
fn counted(count: usize, thing: &str) -> String {
    match count {
        0 => format!("no {thing}s"),
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}
