//! NVIDIA's Multi-Process Service, for as long as processes need it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

/// The program that starts and ends the service.
const CONTROL: &str = "nvidia-cuda-mps-control";

/// How many of the GPU's queues each process gets, unless the environment says otherwise. With CUDA's own eight, one of four
/// processes was told that there is no memory.
const CONNECTIONS: (&str, &str) = ("CUDA_DEVICE_MAX_CONNECTIONS", "2");

/// A service of its own, apart from one that others may run; it ends with this value.
pub(super) struct Mps {
    folder: TempDir,
}

impl Mps {
    pub(super) fn start() -> Result<Self> {
        let mps = Self { folder: tempfile::tempdir().context("cannot make a temporary folder")? };
        // The service does not make them, and serves nobody without.
        for folder in [mps.pipe(), mps.log()] {
            std::fs::create_dir_all(&folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let mut command = Command::new(CONTROL);
        mps.apply(&mut command);
        let started = command.arg("-d").stdout(Stdio::null()).stderr(Stdio::piped()).output();
        let started = started.with_context(|| format!("cannot start {CONTROL}"))?;
        let said = String::from_utf8_lossy(&started.stderr);
        ensure!(started.status.success(), "{CONTROL} does not start: {}", said.trim());
        Ok(mps)
    }

    /// Has a process use this service.
    pub(super) fn apply(&self, command: &mut Command) {
        command.env("CUDA_MPS_PIPE_DIRECTORY", self.pipe());
        command.env("CUDA_MPS_LOG_DIRECTORY", self.log());
        let (name, value) = CONNECTIONS;
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }

    fn pipe(&self) -> PathBuf {
        self.folder.path().join("pipe")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn quit(&self) -> Result<()> {
        let mut command = Command::new(CONTROL);
        self.apply(&mut command);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        if let Some(mut input) = child.stdin.take() {
            writeln!(input, "quit")?;
        }
        child.wait()?;
        Ok(())
    }
}

impl Drop for Mps {
    fn drop(&mut self) {
        let _ = self.quit();
    }
}
