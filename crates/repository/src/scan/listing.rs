//! Entries of folders, counted: a scan reads so many and no more.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use crate::file::unreadable;
use crate::names;

/// The most entries of folders that one scan reads.
pub const MAX_ENTRIES: usize = 100_000;

/// A scan under way.
pub(super) struct Reading<'a> {
    root: &'a Path,
    max_entries: usize,
    entries_read: usize,
}

/// An entry of a folder, after links were followed.
pub(super) struct Listed {
    /// Its name, as far as it is text.
    pub(super) name: String,
    /// Whether all of the name is text.
    pub(super) is_utf8: bool,
    pub(super) path: PathBuf,
    /// What it is, or why that cannot be told.
    pub(super) metadata: Result<Metadata, String>,
}

impl Listed {
    pub(super) fn is_folder(&self) -> bool {
        self.metadata.as_ref().is_ok_and(Metadata::is_dir)
    }
}

impl<'a> Reading<'a> {
    pub(super) fn new(root: &'a Path, max_entries: usize) -> Self {
        Self { root, max_entries, entries_read: 0 }
    }

    /// A path as problems name it: from the root.
    pub(super) fn relative(&self, path: &Path) -> PathBuf {
        path.strip_prefix(self.root).unwrap_or(path).to_path_buf()
    }

    /// The entries of a folder by name, without those that nobody put there to be served; or why there are none. Part of
    /// a folder is not a folder: what it seemed to lack would be taken for gone.
    pub(super) fn list(&mut self, folder: &Path) -> Result<Vec<Listed>, String> {
        let mut listed = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| unreadable(&error))? {
            let entry = entry.map_err(|error| unreadable(&error))?;
            self.entries_read += 1;
            if self.entries_read > self.max_entries {
                let most = self.max_entries;
                return Err(format!("is not read: the repository holds more than {most} entries"));
            }
            let raw_name = entry.file_name();
            let name = raw_name.to_string_lossy().into_owned();
            if names::is_ignored(&name) {
                continue;
            }
            let path = entry.path();
            let metadata = fs::metadata(&path).map_err(|error| unreadable(&error));
            listed.push(Listed { is_utf8: raw_name.to_str().is_some(), name, path, metadata });
        }
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listed)
    }
}
