//! Writing what was asked for to files.

use std::fs::{self, OpenOptions};
use std::path::Path;

use anyhow::{Context, Result};

/// Says at once what would be wrong with writing to a file later, and leaves all as it is.
pub(crate) fn check(path: &Path) -> Result<()> {
    // A pipe that is opened and closed has ended for who reads it.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        return Ok(());
    }
    let is_new = fs::symlink_metadata(path).is_err();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    let left = opened.and_then(|_| if is_new { fs::remove_file(path) } else { Ok(()) });
    left.with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a text; where that fails, the file is named.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
