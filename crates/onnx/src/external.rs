//! Tensor elements that lie in files beside the model's.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

use crate::limits::MAX_EXTERNAL_READS;
use crate::proto::StringStringEntryProto;

/// The files beside a model that its tensors may name, each opened once.
#[derive(Debug, Default)]
pub(crate) struct ExternalFiles {
    folder: Option<PathBuf>,
    open: HashMap<PathBuf, Bytes>,
    /// The sizes of the open files together, and of what was found in them.
    open_bytes: usize,
    found_bytes: usize,
}

impl ExternalFiles {
    /// The files in `folder`, or none, so that a tensor that names one is refused.
    pub(crate) fn new(folder: Option<&Path>) -> Self {
        Self { folder: folder.map(Path::to_path_buf), ..Self::default() }
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
        let Some(end) = end.filter(|&end| start <= end && end <= file.len()) else {
            return Err(format!(
                "external data in '{location}': offset and length go past the {} bytes of the file",
                file.len()
            ));
        };
        // Elements that are not aligned are copied, and copies of copies would add up.
        self.found_bytes = self.found_bytes.saturating_add(end - start);
        if self.found_bytes / MAX_EXTERNAL_READS > self.open_bytes {
            return Err(format!(
                "external data in '{location}': read more than {MAX_EXTERNAL_READS} times over"
            ));
        }
        Ok(file.slice(start..end))
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
        if let Some(known) = self.open.get(&path) {
            return Ok(known.clone());
        }
        let content = weft_mapped_file::open(&path).map_err(describe)?;
        self.open_bytes = self.open_bytes.saturating_add(content.len());
        self.open.insert(path, content.clone());
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_in_the_folder_are_opened_and_only_what_they_hold_is_read() {
        let folder = std::env::temp_dir().join(format!("weft-external-{}", std::process::id()));
        let inner = folder.join("model");
        std::fs::create_dir_all(inner.join("sub")).unwrap();
        std::fs::write(folder.join("outside"), [9; 8]).unwrap();
        std::fs::write(inner.join("data"), [0, 1, 2, 3, 4, 5, 6, 7]).unwrap();
        std::fs::write(inner.join("sub/data"), [8]).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.join("outside"), inner.join("link")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("data", inner.join("inner_link")).unwrap();

        let absolute = inner.join("data").to_string_lossy().into_owned();
        let huge = usize::MAX.to_string();
        type Entries<'a> = &'a [(&'a str, &'a str)];
        let cases: &[(Entries<'_>, Result<&[u8], &str>)] = &[
            (&[("location", "data"), ("offset", "2"), ("length", "3")], Ok(&[2, 3, 4])),
            (&[("location", "data"), ("offset", "6")], Ok(&[6, 7])),
            (&[("location", "./sub/data")], Ok(&[8])),
            (&[("location", "inner_link"), ("length", "1")], Ok(&[0])),
            (&[("location", "data"), ("offset", "8"), ("length", "0")], Ok(&[])),
            (&[("location", "data"), ("offset", "7"), ("length", "2")], Err("go past")),
            (&[("location", "data"), ("offset", "9")], Err("go past")),
            (&[("location", "data"), ("offset", "1"), ("length", &huge)], Err("go past")),
            (&[("location", "data"), ("offset", "-1")], Err("is not a size")),
            (&[("location", "missing")], Err("No such file")),
            (&[("location", "sub")], Err("is not a file")),
            (&[("location", "link")], Err("leaves the model's folder")),
            (&[("location", "../outside")], Err("leaves the model's folder")),
            (&[("location", "sub/../../outside")], Err("leaves the model's folder")),
            (&[("location", &absolute)], Err("leaves the model's folder")),
            (&[("location", "")], Err("leaves the model's folder")),
            (&[("offset", "1")], Err("location is missing")),
        ];
        for (entries, expected) in cases {
            let entry = |(key, value): &(&str, &str)| StringStringEntryProto {
                key: key.to_string(),
                value: value.to_string(),
            };
            let entries: Vec<_> = entries.iter().map(entry).collect();
            match (ExternalFiles::new(Some(&inner)).find(&entries), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(problem), Err(expected)) => assert!(problem.contains(expected), "{problem}"),
                (found, expected) => panic!("{entries:?}: {found:?} where {expected:?}"),
            }
            assert!(ExternalFiles::default().find(&entries).is_err());
        }

        let whole = [StringStringEntryProto { key: "location".into(), value: "data".into() }];
        let mut files = ExternalFiles::new(Some(&inner));
        let reads = (0..100).take_while(|_| files.find(&whole).is_ok()).count();
        assert!((1..2 * MAX_EXTERNAL_READS).contains(&reads), "{reads}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
