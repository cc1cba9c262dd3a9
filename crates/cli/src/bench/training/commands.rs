//! How the jobs of each way are started.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use super::way::Way;
use super::{Options, WINDOW_S};
use crate::bench::peer;
use crate::commands::run::allowed_cores;
use crate::device::DeviceName;
use crate::mps::{FOLDER_VARIABLE, PIPE_VARIABLE, PRIORITY_VARIABLE, PrivateMps, SHARE_VARIABLE};

/// The training job on a GPU.
const SCRIPT: &str = include_str!("../peer_training.py");

/// The commands of one run of the benchmark.
pub(super) struct Commands<'a> {
    options: &'a Options,
    weft: PathBuf,
    /// How many cores there are, and which of them inference has where it is bounded; of a CPU.
    cores: (usize, String),
}

/// What jobs of one way share; it ends after them.
pub(super) struct Surroundings {
    /// Where no service is, or where `weft run` has its own.
    folder: TempDir,
    mps: Option<PrivateMps>,
}

impl<'a> Commands<'a> {
    pub(super) fn new(options: &'a Options) -> Result<Self> {
        let cores = allowed_cores()?;
        let count = cores.len();
        let trained_on = (f64::from(options.share) / 100.0 * count as f64).round().max(1.0);
        let inferred_on: Vec<String> = cores
            .iter()
            .take(count.saturating_sub(trained_on as usize))
            .map(|c| c.to_string())
            .collect();
        let fits = options.is_on_gpu() || !inferred_on.is_empty();
        ensure!(fits, "{}% of {count} cores for training leave none to inference", options.share);
        Ok(Self {
            options,
            weft: std::env::current_exe().context("where this program lies")?,
            cores: (count, inferred_on.join(",")),
        })
    }

    pub(super) fn surroundings(&self, way: Way) -> Result<Surroundings> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let mps = (way == Way::PlainMps).then(PrivateMps::start).transpose()?;
        Ok(Surroundings { folder, mps })
    }

    pub(super) fn training(&self, way: Way, around: &Surroundings) -> Result<Command> {
        let share = format!("{}%", self.options.share);
        let mut command =
            self.within(way, around, &["--share", share.as_str(), "--priority", "low"]);
        if let Some(training) = &self.options.training {
            command.args(["sh", "-c", training]);
        } else if self.options.is_on_gpu() {
            command.arg(peer::python()).args(["-c", SCRIPT]);
            command.args([self.options.training_batch.to_string(), WINDOW_S.to_string()]);
        } else {
            command.arg(&self.weft).args(["bench", "training-stand-in"]);
            command.args(["--threads", &self.cores.0.to_string()]);
            command.args(["--window", &WINDOW_S.to_string()]);
        }
        Ok(command)
    }

    pub(super) fn inference(&self, way: Way, around: &Surroundings) -> Result<Command> {
        let options = self.options;
        let left = if way == Way::TrainingBounded { 100 } else { 100 - options.share };
        let share = format!("{left}%");
        let bounds = match options.is_on_gpu() {
            true => ["--share", share.as_str()],
            false => ["--cores", self.cores.1.as_str()],
        };
        let mut command = self.within(way, around, &bounds);
        command.arg(&self.weft).args(["bench", "training-inference", options.model()]);
        command.args(["--device", &options.device.device.to_string()]);
        if let Some(precision) = options.device.precision {
            command.args(["--precision", &precision.to_string()]);
        }
        command.args(["--pace-ms", &options.pace_ms().to_string()]);
        command.args(["--seconds", &options.seconds.to_string()]);
        Ok(command)
    }

    /// A command that runs what is added to it, bounded where the way says so.
    fn within(&self, way: Way, around: &Surroundings, bounds: &[&str]) -> Command {
        let device = if self.options.device.device == DeviceName::Cpu { "cpu" } else { "cuda" };
        let mut command = if way.is_bounded() {
            let mut command = Command::new(&self.weft);
            command.args(["run", "--quiet", "--device", device]).args(bounds).arg("--");
            command.env(FOLDER_VARIABLE, around.folder.path()).env_remove(PIPE_VARIABLE);
            command
        } else {
            let mut command = Command::new("env");
            // No service lives there, so that none is used.
            command.env(PIPE_VARIABLE, around.folder.path());
            command
        };
        if let Some(mps) = &around.mps {
            mps.apply(&mut command);
        }
        command.env_remove(SHARE_VARIABLE).env_remove(PRIORITY_VARIABLE);
        command
    }

    /// What may help where a training job does not start.
    pub(super) fn training_hint(&self) -> &'static str {
        match self.options.training {
            None if self.options.is_on_gpu() => {
                "WEFT_PYTHON names a Python with torch and torchvision, --training another job"
            }
            _ => "the job should print lines such as {\"steps_per_s\": 3.5}",
        }
    }

    /// The rate in a line of a training job.
    pub(super) fn rate(&self, line: &Value) -> Result<f64> {
        let rate = line["steps_per_s"].as_f64().filter(|rate| rate.is_finite() && *rate >= 0.0);
        rate.with_context(|| format!("the training job said '{line}': {}", self.training_hint()))
    }
}
