//! A model that is a folder, with a folder for each version and perhaps a `config.pbtxt`.

use std::collections::{BTreeMap, BTreeSet};

use super::listing::{Listed, Reading};
use crate::file::read_text;
use crate::fingerprint::{FileStamp, Fingerprint};
use crate::model_config::{DEFAULT_MODEL_FILE, ModelConfig};
use crate::problem::Problem;
use crate::repository::{Entry, Model, Version};

const CONFIG_FILE: &str = "config.pbtxt";

pub(super) fn read(folder: &Listed, reading: &mut Reading<'_>) -> Entry {
    let mut entry = Entry::default();
    let listed = match reading.list(&folder.path) {
        Ok(listed) => listed,
        Err(reason) => {
            entry.problems.push(Problem::new(&folder.name, reason));
            return entry;
        }
    };
    let config_file = listed.iter().find(|found| found.name == CONFIG_FILE);
    let config = config_file.map(|file| read_config(file, &folder.name, reading, &mut entry));
    let model_file =
        config.iter().flatten().next().map_or(DEFAULT_MODEL_FILE, ModelConfig::model_file);
    let mut versions = BTreeMap::new();
    for found in &listed {
        let Some(number) = version_number(found, reading, &mut entry) else { continue };
        match read_version(found, model_file, reading) {
            Ok(version) => {
                versions.insert(number, version);
            }
            Err(what) => {
                entry.broken_versions.insert(number);
                entry.problems.push(Problem::new(reading.relative(&found.path), what));
            }
        }
    }
    if versions.is_empty() {
        entry.problems.push(Problem::new(&folder.name, without_versions(&listed, model_file)));
        return entry;
    }
    // Without what a broken configuration would have said, nobody knows how the model is to be served.
    let config = match config {
        None => None,
        Some(Some(config)) => Some(config),
        Some(None) => return entry,
    };
    let model = Model { versions, config };
    if check_policy(&model, &folder.name, &mut entry) {
        entry.model = Some(model);
    }
    entry
}

fn read_config(
    file: &Listed,
    folder_name: &str,
    reading: &Reading<'_>,
    entry: &mut Entry,
) -> Option<ModelConfig> {
    let path = reading.relative(&file.path);
    let text = match read_text(&file.path) {
        Ok(text) => text,
        Err(what) => {
            entry.problems.push(Problem::new(path, what));
            return None;
        }
    };
    let read = ModelConfig::read(&text);
    entry.problems.extend(Problem::of_text(&path, read.problems.into_iter()));
    entry.notes.extend(Problem::of_text(&path, read.notes.into_iter()));
    let config = read.config?;
    let other_name = config.name.as_ref().filter(|name| *name != folder_name);
    if let Some(name) = other_name {
        let what = format!("the name {name:?} is not that of the folder, {folder_name:?}");
        entry.problems.push(Problem::new(&path, what));
        return None;
    }
    Some(config)
}

/// The number of a version's folder; `None` where it is something else. Folders of other names may hold what belongs to the
/// model.
fn version_number(found: &Listed, reading: &Reading<'_>, entry: &mut Entry) -> Option<u64> {
    let is_number = found.name.bytes().all(|byte| byte.is_ascii_digit());
    if !found.is_folder() || !is_number {
        return None;
    }
    let path = reading.relative(&found.path);
    if found.name.starts_with('0') {
        let what = "ignored: a version is a number from 1 on, without zeros before it";
        entry.notes.push(Problem::new(path, what));
        return None;
    }
    let number = found.name.parse::<i64>().ok().and_then(|number| u64::try_from(number).ok());
    if number.is_none() {
        entry.problems.push(Problem::new(path, "the number of this version is too large"));
    }
    number
}

fn read_version(
    folder: &Listed,
    model_file: &str,
    reading: &mut Reading<'_>,
) -> Result<Version, String> {
    let listed = reading.list(&folder.path)?;
    let model = listed.iter().find(|found| found.name == model_file);
    let model = model.ok_or_else(|| format!("there is no {model_file} in it"))?;
    match &model.metadata {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(format!("{model_file} is not a file")),
        Err(reason) => return Err(format!("{model_file} {reason}")),
    }
    let files = listed.iter().filter_map(|found| {
        let metadata = found.metadata.as_ref().ok().filter(|metadata| metadata.is_file())?;
        Some((found.name.clone(), FileStamp::of(metadata)))
    });
    let fingerprint = Fingerprint::new(files.collect());
    Ok(Version { file: model.path.clone(), fingerprint })
}

fn without_versions(listed: &[Listed], model_file: &str) -> String {
    let lies_here = listed.iter().any(|found| found.name == model_file && !found.is_folder());
    match lies_here {
        true => {
            format!("{model_file} lies in the model's folder; it belongs into 1/, the version's")
        }
        false => format!("there is no version to serve: no folder 1/ with a {model_file}"),
    }
}

/// Whether the configuration's policy leaves a version to serve.
fn check_policy(model: &Model, name: &str, entry: &mut Entry) -> bool {
    let available: BTreeSet<u64> = model.versions.keys().copied().collect();
    let missing = model.config.as_ref().map(|config| config.version_policy.missing(&available));
    for version in missing.into_iter().flatten() {
        let what = format!("version_policy names version {version}, which cannot be served");
        entry.problems.push(Problem::new(name, what));
    }
    !model.served_versions().is_empty()
}
