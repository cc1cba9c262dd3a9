//! Where models come from: what there is to serve, and how it is brought in and put out.

use std::sync::Arc;

use crate::error::ServeError;
use crate::models::{ModelEntry, ModelTable};

/// One version of a model that there is, served or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The model.
    pub name: String,
    /// Empty where it is not known before the model is loaded.
    pub version: String,
    /// True while it is served.
    pub is_ready: bool,
    /// Why it is not; empty where nobody wanted it.
    pub reason: String,
}

/// A collection of models. Its methods may take as long as loading does.
pub trait Repository: Send + Sync {
    /// Every model that there is, by name.
    fn index(&self) -> Vec<IndexEntry>;

    /// Serves a model, with its configuration replaced where one is given, as JSON; one that is served already is read again.
    fn load(&self, name: &str, config: Option<&str>) -> Result<(), ServeError>;

    /// Serves a model no more.
    fn unload(&self, name: &str) -> Result<(), ServeError>;

    /// True once what was there at the beginning has been brought in, as far as it can be.
    fn is_ready(&self) -> bool {
        true
    }

    /// Brings back a model that is asleep.
    fn wake(&self, name: &str) -> Result<(), ServeError> {
        Err(ServeError::UnknownModel(name.into()))
    }
}

/// Models that were loaded before the server started, and stay loaded: they can be hidden from clients, and shown again.
pub struct FixedRepository {
    table: Arc<ModelTable>,
    entries: Vec<Arc<ModelEntry>>,
}

impl FixedRepository {
    /// Serves these models in a table.
    pub fn new(table: Arc<ModelTable>, entries: Vec<Arc<ModelEntry>>) -> Self {
        for entry in &entries {
            table.insert(entry.clone());
        }
        Self { table, entries }
    }

    fn of(&self, name: &str) -> Result<Vec<&Arc<ModelEntry>>, ServeError> {
        let entries: Vec<_> = self.entries.iter().filter(|entry| entry.name == name).collect();
        if entries.is_empty() { Err(ServeError::UnknownModel(name.into())) } else { Ok(entries) }
    }
}

impl Repository for FixedRepository {
    fn index(&self) -> Vec<IndexEntry> {
        let entry = |entry: &Arc<ModelEntry>| {
            let is_ready = self.table.find(&entry.name, &entry.version_text).is_ok();
            IndexEntry {
                name: entry.name.clone(),
                version: entry.version_text.clone(),
                is_ready,
                reason: if is_ready { String::new() } else { "unloaded".into() },
            }
        };
        self.entries.iter().map(entry).collect()
    }

    fn load(&self, name: &str, config: Option<&str>) -> Result<(), ServeError> {
        if config.is_some() {
            let what = "a configuration in a request to load".to_string();
            return Err(weft_protocol::ProtocolError::Unsupported(what).into());
        }
        for entry in self.of(name)? {
            self.table.insert(entry.clone());
        }
        Ok(())
    }

    fn unload(&self, name: &str) -> Result<(), ServeError> {
        self.of(name)?;
        self.table.remove(name);
        Ok(())
    }
}
