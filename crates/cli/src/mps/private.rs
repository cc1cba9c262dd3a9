//! A service of its own, apart from one that others may run.

use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::control::Control;

/// The service; it ends with this value.
pub(crate) struct PrivateMps {
    control: Control,
    _folder: TempDir,
}

impl PrivateMps {
    pub(crate) fn start() -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let control = Control::in_folder(folder.path());
        control.start()?;
        Ok(Self { control, _folder: folder })
    }

    /// Has a process use this service.
    pub(crate) fn apply(&self, command: &mut Command) {
        self.control.apply(command);
    }
}

impl Drop for PrivateMps {
    fn drop(&mut self) {
        let _ = self.control.quit();
    }
}
