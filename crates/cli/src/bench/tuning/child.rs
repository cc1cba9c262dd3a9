//! `weft tune` in a process of its own, with a database of its own.

use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use weft_tuner::search::SearchOptions;
use weft_tuner::session::TuneOptions;

use crate::device::{DeviceName, DeviceOptions};
use crate::tuning::ModelSelection;

/// How thorough a search is.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Thoroughness {
    /// Candidates of each operator that are tried at most
    #[arg(long, default_value_t = SearchOptions::default().max_trials)]
    pub(super) trials: usize,
    /// Milliseconds for which each candidate is timed
    #[arg(long, value_name = "MS", default_value_t = default_effort_ms())]
    pub(super) effort: f64,
}

/// Milliseconds for which `weft tune` times each candidate.
pub(super) fn default_effort_ms() -> f64 {
    TuneOptions::default().effort.as_secs_f64() * 1e3
}

/// The command that tunes models for partitions of a size, or of the size that it takes by itself.
pub(super) fn command(
    selection: &ModelSelection,
    device: &DeviceOptions,
    thoroughness: Thoroughness,
    size: Option<usize>,
    database: &Path,
) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("where this program lies")?);
    command.arg("tune").args(&selection.models).arg("--json").arg("--database").arg(database);
    let batches: Vec<String> = selection.batches.iter().map(usize::to_string).collect();
    command.args(["--batches", &batches.join(",")]);
    command.args(["--trials", &thoroughness.trials.to_string()]);
    command.args(["--effort", &thoroughness.effort.to_string()]);
    for (name, size) in &selection.dimensions.dimensions {
        command.args(["--dim", &format!("{name}={size}")]);
    }
    command.args(["--device", &device.device.to_string()]);
    if let Some(size) = size {
        let option = if device.device == DeviceName::Cpu { "--cores" } else { "--sms" };
        command.args([option, &size.to_string()]);
    }
    if let Some(precision) = device.precision {
        command.args(["--precision", precision.name()]);
    }
    Ok(command)
}

/// Runs the command; what it reports of its only size.
pub(super) fn report(mut command: Command) -> Result<Value> {
    // Into a file, since it is done before the processes that it has started, which may say something too.
    let mut errors = tempfile::tempfile().context("cannot make a temporary file")?;
    command.stderr(errors.try_clone()?).stdout(Stdio::piped());
    let output = command.spawn().and_then(Child::wait_with_output);
    let output = output.context("cannot start weft tune")?;
    let mut said = String::new();
    errors.rewind()?;
    errors.read_to_string(&mut said)?;
    ensure!(output.status.success(), "weft tune: {}", said.trim());
    let mut report: Value =
        serde_json::from_slice(&output.stdout).context("what weft tune printed")?;
    Ok(report[0].take())
}
