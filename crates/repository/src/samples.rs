//! Repositories in memory, for tests.

use std::path::Path;

use crate::fingerprint::{FileStamp, Fingerprint};
use crate::model_config::ModelConfig;
use crate::problem::Problem;
use crate::repository::{Entry, Model, Repository, SettingsEntry, Version};
use crate::settings::Settings;

/// A version whose file is so long.
pub(crate) fn version(length_bytes: u64) -> Version {
    let stamp = FileStamp { length_bytes, modified_ns: 0, inode: 1 };
    let fingerprint = Fingerprint::new(vec![("model.onnx".into(), stamp)]);
    Version { file: "model.onnx".into(), fingerprint }
}

/// A model with these versions, by their number and length.
pub(crate) fn model(versions: &[(u64, u64)], max_batch_size: Option<u32>) -> Model {
    Model {
        versions: versions.iter().map(|&(number, length)| (number, version(length))).collect(),
        config: max_batch_size
            .map(|most| ModelConfig { max_batch_size: Some(most), ..Default::default() }),
    }
}

/// An entry that cannot be served.
pub(crate) fn broken() -> Entry {
    Entry { problems: vec![Problem::new("x", "is broken")], ..Entry::default() }
}

/// What a file says, or that it is wrong.
pub(crate) fn settings(toml: &str) -> SettingsEntry {
    match Settings::from_toml(toml, Path::new("")) {
        Ok(read) => SettingsEntry { settings: Some(read.settings), problems: Vec::new() },
        Err(problems) => SettingsEntry {
            settings: None,
            problems: vec![Problem::new("weft.toml", problems.to_string())],
        },
    }
}

/// A repository of these.
pub(crate) fn repository(entries: &[(&str, Entry)], toml: &str) -> Repository {
    let entries = entries.iter().map(|(name, entry)| (name.to_string(), entry.clone())).collect();
    Repository { entries, settings: settings(toml) }
}

impl From<Model> for Entry {
    fn from(model: Model) -> Self {
        Self { model: Some(model), ..Self::default() }
    }
}
