//! A model that is one `.onnx` file in the root: its version is 1.

use std::collections::BTreeMap;
use std::fs::Metadata;

use super::listing::Listed;
use crate::fingerprint::{FileStamp, Fingerprint};
use crate::problem::Problem;
use crate::repository::{Entry, Model, Version};

/// The version of a model that has no folders of versions.
const ONLY_VERSION: u64 = 1;

pub(super) fn read(found: &Listed, metadata: &Metadata, siblings: &[Listed]) -> Entry {
    if !metadata.is_file() {
        let problems = vec![Problem::new(&found.name, "is neither a file nor a folder")];
        return Entry { problems, ..Entry::default() };
    }
    // Exporters put large weights beside the model, under its name and more.
    let stamps = siblings.iter().filter(|sibling| sibling.name.starts_with(&found.name));
    let stamps = stamps.filter_map(|sibling| {
        let metadata = sibling.metadata.as_ref().ok().filter(|metadata| metadata.is_file())?;
        Some((sibling.name.clone(), FileStamp::of(metadata)))
    });
    let fingerprint = Fingerprint::new(stamps.collect());
    let version = Version { file: found.path.clone(), fingerprint };
    let versions = BTreeMap::from([(ONLY_VERSION, version)]);
    Entry { model: Some(Model { versions, config: None }), ..Entry::default() }
}
