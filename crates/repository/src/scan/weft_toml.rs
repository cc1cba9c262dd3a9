//! The settings of a repository, and whether they fit what lies in it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use super::RepositoryFiles;
use crate::file::read_text;
use crate::problem::Problem;
use crate::repository::{Entry, SettingsEntry};
use crate::settings::Settings;

const SETTINGS_FILE: &str = "weft.toml";

pub(super) fn read(files: &RepositoryFiles, entries: &BTreeMap<String, Entry>) -> SettingsEntry {
    let in_root = files.root.join(SETTINGS_FILE);
    let path = files.settings.as_ref().unwrap_or(&in_root);
    let shown = files.settings.as_deref().unwrap_or(Path::new(SETTINGS_FILE));
    let is_absent =
        || path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if files.settings.is_none() && is_absent() {
        return SettingsEntry { settings: Some(Settings::default()), problems: Vec::new() };
    }
    let text = match read_text(path) {
        Ok(text) => text,
        Err(what) => {
            return SettingsEntry { settings: None, problems: vec![Problem::new(shown, what)] };
        }
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    match Settings::from_toml(&text, folder) {
        Ok(read) => {
            // A model may come later, and one that left must not take the others' settings with it.
            let unknown =
                read.mentions.iter().filter(|mention| !entries.contains_key(&mention.model));
            let unknown: Vec<_> = unknown
                .map(|mention| {
                    let what = format!("there is no model '{}' in the repository", mention.model);
                    (mention.line, what)
                })
                .collect();
            let problems = Problem::of_text(shown, unknown.into_iter());
            SettingsEntry { settings: Some(read.settings), problems }
        }
        Err(problems) => {
            let problems = problems.as_slice().iter();
            let problems = problems.map(|problem| (problem.line, problem.what.clone()));
            SettingsEntry { settings: None, problems: Problem::of_text(shown, problems) }
        }
    }
}
