//! Texts that commands read from files, and what they write to files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result};

/// No file that people write is larger; what goes on without end, such as a device, is.
const MAX_TEXT_BYTES: u64 = 16 << 20;

/// A text that people write: a mix, a workload, profiles.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_TEXT_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_TEXT_BYTES {
        let problem = format!("it is larger than {} MiB", MAX_TEXT_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(text)
}

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
