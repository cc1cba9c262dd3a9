//! Texts of bounded length from files that really are files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The longest text that is read: settings and configurations are written by people.
pub(crate) const MAX_TEXT_BYTES: u64 = 4 << 20;

/// Reads a text, or says why that cannot be done. Pipes and devices are not opened: they may never end, or never begin.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    let metadata = path.metadata().map_err(|error| unreadable(&error))?;
    if !metadata.is_file() {
        return Err("is not a file".into());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    // The length may have changed since, so the reading itself is limited.
    file.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        return Err(format!("is longer than {} MiB", MAX_TEXT_BYTES >> 20));
    }
    String::from_utf8(bytes).map_err(|_| "is not a text in UTF-8".into())
}

pub(crate) fn unreadable(error: &io::Error) -> String {
    format!("cannot be read: {error}")
}
