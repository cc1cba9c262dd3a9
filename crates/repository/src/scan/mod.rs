//! A folder read as a model repository.

mod listing;
mod model_folder;
mod plain_file;
mod weft_toml;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use listing::MAX_ENTRIES;

use crate::names;
use crate::problem::Problem;
use crate::repository::{Entry, Repository};
use listing::{Listed, Reading};

/// How the files of plain models end.
const ONNX_ENDING: &str = ".onnx";

/// Where a repository lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryFiles {
    /// The folder of the models.
    pub root: PathBuf,
    /// The settings; `weft.toml` in the folder, if it is there, where no other is named.
    pub settings: Option<PathBuf>,
}

impl RepositoryFiles {
    /// A folder, with the settings that lie in it.
    pub fn in_folder(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), settings: None }
    }
}

/// The folder itself cannot be read, or holds more than is read of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model repository {} {reason}", root.display())]
pub struct ScanError {
    /// The folder.
    pub root: PathBuf,
    /// Why.
    pub reason: String,
}

/// Reads a repository. What is wrong with one model is said there, and leaves the others alone.
pub fn scan(files: &RepositoryFiles) -> Result<Repository, ScanError> {
    scan_up_to(MAX_ENTRIES, files)
}

fn scan_up_to(max_entries: usize, files: &RepositoryFiles) -> Result<Repository, ScanError> {
    let mut reading = Reading::new(&files.root, max_entries);
    let listed = reading
        .list(&files.root)
        .map_err(|reason| ScanError { root: files.root.clone(), reason })?;
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    for found in &listed {
        let Some((name, entry)) = read_entry(found, &listed, &mut reading) else { continue };
        let entry = match entries.remove(&name) {
            Some(other) => twice(&name, other, entry),
            None => entry,
        };
        entries.insert(name, entry);
    }
    let settings = weft_toml::read(files, &entries);
    Ok(Repository { entries, settings })
}

/// What lies under one name of the root; `None` where that is no model and was not meant to be.
fn read_entry(
    found: &Listed,
    siblings: &[Listed],
    reading: &mut Reading<'_>,
) -> Option<(String, Entry)> {
    let broken = |what: String| Entry {
        problems: vec![Problem::new(&found.name, what)],
        ..Entry::default()
    };
    let plain_name = found.name.strip_suffix(ONNX_ENDING);
    let metadata = match &found.metadata {
        Ok(metadata) => metadata,
        Err(reason) => {
            return Some((plain_name.unwrap_or(&found.name).to_string(), broken(reason.clone())));
        }
    };
    let name = match plain_name {
        _ if metadata.is_dir() => found.name.as_str(),
        Some(name) => name,
        None => return None,
    };
    let objection =
        if found.is_utf8 { names::objection(name) } else { Some("a name must be UTF-8") };
    let entry = match objection {
        Some(objection) => broken(objection.to_string()),
        None if metadata.is_dir() => model_folder::read(found, reading),
        None => plain_file::read(found, metadata, siblings),
    };
    Some((name.to_string(), entry))
}

/// Two models of one name: which of them is meant, nobody can say.
fn twice(name: &str, one: Entry, other: Entry) -> Entry {
    let mut entry = Entry::default();
    for given in [one, other] {
        entry.problems.extend(given.problems);
        entry.notes.extend(given.notes);
    }
    let what =
        format!("there are two models '{name}'; neither is served until one of them is gone");
    entry.problems.push(Problem::new(name, what));
    entry
}

#[cfg(test)]
mod tests;
