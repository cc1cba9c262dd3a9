//! Tensor elements that lie in files beside the model's.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

use crate::proto::StringStringEntryProto;

/// The files beside a model that its tensors may name, each read once.
#[derive(Debug, Default)]
pub(crate) struct ExternalFiles {
    folder: Option<PathBuf>,
    read: HashMap<PathBuf, Bytes>,
}

impl ExternalFiles {
    /// The files in `folder`.
    pub(crate) fn in_folder(folder: Option<&Path>) -> Self {
        Self { folder: folder.map(Path::to_path_buf), read: HashMap::new() }
    }

    /// No files: a tensor that names one is refused.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// The bytes that a tensor's `external_data` entries point at.
    pub(crate) fn find(&mut self, entries: &[StringStringEntryProto]) -> Result<Bytes, String> {
        let entry = |key: &str| {
            entries.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
        };
        let number = |key: &str| match entry(key) {
            None => Ok(None),
            Some(text) => text
                .parse::<usize>()
                .map(Some)
                .map_err(|_| format!("external data: {key} '{text}' is not a size")),
        };
        let location = entry("location").ok_or("external data: the location is missing")?;
        let file = self
            .file(location)
            .map_err(|problem| format!("external data in '{location}': {problem}"))?;
        let start = number("offset")?.unwrap_or(0);
        let end = match number("length")? {
            Some(length) => start.checked_add(length),
            None => Some(file.len()),
        };
        match end {
            Some(end) if start <= end && end <= file.len() => Ok(file.slice(start..end)),
            _ => Err(format!(
                "external data in '{location}': offset and length go past the {} bytes of the file",
                file.len()
            )),
        }
    }

    fn file(&mut self, location: &str) -> Result<Bytes, String> {
        let folder = self.folder.as_ref().ok_or("the model was not read from a folder")?;
        let relative = Path::new(location);
        let is_inside = relative
            .components()
            .all(|component| matches!(component, Component::Normal(_) | Component::CurDir));
        if !is_inside || location.is_empty() {
            return Err("the path leaves the model's folder".into());
        }
        // Links are followed before the check, so that none leads out of the folder.
        let describe = |error: std::io::Error| error.to_string();
        let folder = folder.canonicalize().map_err(describe)?;
        let path = folder.join(relative).canonicalize().map_err(describe)?;
        if !path.starts_with(&folder) {
            return Err("the path leaves the model's folder".into());
        }
        if let Some(known) = self.read.get(&path) {
            return Ok(known.clone());
        }
        if !path.is_file() {
            return Err("is not a file".into());
        }
        let content = Bytes::from(std::fs::read(&path).map_err(describe)?);
        self.read.insert(path, content.clone());
        Ok(content)
    }
}
