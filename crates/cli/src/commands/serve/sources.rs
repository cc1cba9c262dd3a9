//! What the command line names: the files of models, and what is agreed about each.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use weft_repository::{ModelSettings, RepositoryFiles, Settings, scan};

use crate::{model_file, progress};

/// The version of a model whose file stands by itself.
const ONLY_VERSION: u64 = 1;

/// One version of a model that is to be served.
pub(super) struct Source {
    pub(super) name: String,
    pub(super) version: u64,
    pub(super) file: PathBuf,
    pub(super) agreed: ModelSettings,
}

/// Everything that is named: files, model repositories, models of the zoo.
pub(super) fn named(given: &[String]) -> Result<Vec<Source>> {
    let mut sources: Vec<Source> = Vec::new();
    for given in given {
        let path = model_file::resolve(given)?;
        let found = if path.is_dir() { in_folder(&path)? } else { vec![alone(path)] };
        for source in &found {
            let is_new = sources.iter().all(|other| other.name != source.name);
            ensure!(is_new, "two models are named '{}'", source.name);
        }
        sources.extend(found);
    }
    ensure!(!sources.is_empty(), "there is no model to serve");
    Ok(sources)
}

fn alone(file: PathBuf) -> Source {
    let name = model_file::name(&file);
    let agreed = Settings::default().of_model(&name, None);
    Source { name, version: ONLY_VERSION, file, agreed }
}

fn in_folder(folder: &Path) -> Result<Vec<Source>> {
    let repository = scan(&RepositoryFiles::in_folder(folder))?;
    let problems: Vec<String> = repository.all_problems().map(ToString::to_string).collect();
    if !problems.is_empty() {
        bail!("the model repository {} has problems:\n{}", folder.display(), problems.join("\n"));
    }
    for note in repository.all_notes() {
        progress::note(note);
    }
    let mut sources = Vec::new();
    for (name, model) in repository.models() {
        let Some(agreed) = repository.model_settings(name) else { continue };
        for (version, found) in model.served_versions() {
            let (name, file, agreed) = (name.to_string(), found.file.clone(), agreed.clone());
            sources.push(Source { name, version, file, agreed });
        }
    }
    Ok(sources)
}
