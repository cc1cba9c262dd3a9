//! Writing what was asked for to files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Writes a text; where that fails, the file is named.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
