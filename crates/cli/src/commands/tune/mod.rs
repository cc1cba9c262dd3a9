//! `weft tune`: the fastest kernels for the share of the device that models will get.

mod check;
mod message;
mod options;
mod report;
mod supervisor;
mod view;
mod watching;
mod while_serving;
mod worker;

use std::process::ExitCode;

use anyhow::{Result, ensure};
use weft_tuner::database::Database;

pub(crate) use options::Options;

/// The most processes that share a device.
const MAX_WORKERS: usize = 64;

/// Tunes in further processes, so that a kernel that never ends, or ends its process, ends nothing else.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    if options.as_worker.is_some() {
        return worker::run(options);
    }
    ensure!(options.effort > 0.0 && options.effort < 60_000.0, "--effort must be positive");
    ensure!(options.trials > 0, "--trials must be at least 1");
    let is_count = (1..=MAX_WORKERS).contains(&options.workers);
    ensure!(is_count, "--workers must be between 1 and {MAX_WORKERS}");
    if let Some(address) = &options.while_serving {
        return while_serving::run(options, address);
    }
    // What is wrong with the database is said once, before anything is started.
    drop(Database::open(&options.database()?)?);
    supervisor::run(options)
}
