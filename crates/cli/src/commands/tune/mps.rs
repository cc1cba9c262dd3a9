//! NVIDIA's Multi-Process Service, for as long as processes need it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The program that starts and ends the service.
const CONTROL: &str = "nvidia-cuda-mps-control";

/// A service of its own, apart from one that others may run; it ends with this value.
pub(super) struct Mps {
    folder: PathBuf,
}

impl Mps {
    pub(super) fn start() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("weft-mps-{}", std::process::id()));
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        let mps = Self { folder };
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
        let folder = |name: &str| -> PathBuf { Path::new(&self.folder).join(name) };
        command.env("CUDA_MPS_PIPE_DIRECTORY", folder("pipe"));
        command.env("CUDA_MPS_LOG_DIRECTORY", folder("log"));
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
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
