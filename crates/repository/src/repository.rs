//! A repository as it was found: every model, what is agreed about it, and all that is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::fingerprint::Fingerprint;
use crate::model_config::ModelConfig;
use crate::problem::Problem;
use crate::settings::{ModelSettings, Settings};
use crate::versions::VersionPolicy;

/// One version of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The ONNX file.
    pub file: PathBuf,
    /// What its files look like.
    pub fingerprint: Fingerprint,
}

/// A model that can be served, as far as can be seen without reading it.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Every version that is there; at least one.
    pub versions: BTreeMap<u64, Version>,
    /// What its `config.pbtxt` says, where it has one.
    pub config: Option<ModelConfig>,
}

impl Model {
    /// The versions that its policy chooses, by number.
    pub fn served_versions(&self) -> BTreeMap<u64, &Version> {
        let default = VersionPolicy::default();
        let policy = self.config.as_ref().map_or(&default, |config| &config.version_policy);
        let chosen = policy.choose(self.versions.keys().copied());
        self.versions
            .iter()
            .filter(|(number, _)| chosen.contains(number))
            .map(|(&number, version)| (number, version))
            .collect()
    }
}

/// All that was found under one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The model; `None` where something is so wrong that it cannot be served.
    pub model: Option<Model>,
    /// Versions that are there and cannot be served.
    pub broken_versions: BTreeSet<u64>,
    /// What is wrong: with the model, or with some of its versions.
    pub problems: Vec<Problem>,
    /// What its user should know, and that is not wrong: what of `config.pbtxt` is not used.
    pub notes: Vec<Problem>,
}

/// `weft.toml` as it was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingsEntry {
    /// What it says, or the defaults where there is none. `None` where it is wrong: then nothing may be served by it, since
    /// who may use what is not known.
    pub settings: Option<Settings>,
    /// All that is wrong with it.
    pub problems: Vec<Problem>,
}

/// A model repository.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repository {
    /// What was found, by name. A name that is wrong is listed too, and has no model.
    pub entries: BTreeMap<String, Entry>,
    /// What `weft.toml` says.
    pub settings: SettingsEntry,
}

impl Repository {
    /// The models that can be served, by name.
    pub fn models(&self) -> impl Iterator<Item = (&str, &Model)> {
        self.entries.iter().filter_map(|(name, entry)| Some((name.as_str(), entry.model.as_ref()?)))
    }

    /// The model of a name, where it can be served.
    pub fn model(&self, name: &str) -> Option<&Model> {
        self.entries.get(name)?.model.as_ref()
    }

    /// What is agreed about a model: what `weft.toml` says of it, else what its `config.pbtxt` says, else the defaults of
    /// `weft.toml`, else Weft's. `None` where there is no such model or `weft.toml` is wrong.
    pub fn model_settings(&self, name: &str) -> Option<ModelSettings> {
        let model = self.model(name)?;
        Some(self.settings.settings.as_ref()?.of_model(name, model.config.as_ref()))
    }

    /// Everything that is wrong: with `weft.toml`, then model by model.
    pub fn all_problems(&self) -> impl Iterator<Item = &Problem> {
        let of_models = self.entries.values().flat_map(|entry| &entry.problems);
        self.settings.problems.iter().chain(of_models)
    }

    /// Everything worth knowing that is not wrong, model by model.
    pub fn all_notes(&self) -> impl Iterator<Item = &Problem> {
        self.entries.values().flat_map(|entry| &entry.notes)
    }

    /// This repository, except that what is broken here stays as it was before: a model or a version that cannot be served
    /// any more though it is still there, and a `weft.toml` that is wrong. What is gone is gone.
    pub fn keeping_what_worked(mut self, before: &Repository) -> Self {
        for (name, entry) in &mut self.entries {
            let Some(before) = before.model(name) else { continue };
            let model = entry.model.get_or_insert_with(|| before.clone());
            for number in &entry.broken_versions {
                if let Some(version) = before.versions.get(number) {
                    model.versions.insert(*number, version.clone());
                }
            }
        }
        if self.settings.settings.is_none() {
            self.settings.settings = before.settings.settings.clone();
        }
        self
    }

    /// The names of the models that can be served.
    pub(crate) fn model_names(&self) -> BTreeSet<&str> {
        self.models().map(|(name, _)| name).collect()
    }
}
