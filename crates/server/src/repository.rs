//! Where models come from: what there is to serve, and how it is brought in and put out.

use std::sync::Arc;

use crate::error::ServeError;
use crate::models::{ModelEntry, ModelTable};

/// Whether a version is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelState {
    /// It is.
    Ready,
    /// It will be when it is asked for.
    Asleep,
    /// An operator has put it out.
    Unloaded,
    /// It cannot be.
    Failed,
}

impl ModelState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ready, Self::Asleep, Self::Unloaded, Self::Failed];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Asleep => "asleep",
            Self::Unloaded => "unloaded",
            Self::Failed => "failed",
        }
    }
}

/// Memory of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// What models that are on the device take, at their largest batches.
    pub taken_bytes: u64,
    /// What they may take.
    pub budget_bytes: u64,
}

/// One version of a model that there is, served or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The model.
    pub name: String,
    /// Empty where it is not known before the model is loaded.
    pub version: String,
    /// Whether it is served.
    pub state: ModelState,
    /// Why it is not; empty where it is.
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

    /// What models take of the device's memory, where that is limited.
    fn memory(&self) -> Option<MemoryUse> {
        None
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
                state: if is_ready { ModelState::Ready } else { ModelState::Unloaded },
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
