//! The library: models on disk become models that are served, and stay in step with the disk. Those that do not fit the
//! device's memory together take turns.

mod curator;
mod grouping;
mod loading;
mod profiles;
mod residency;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use weft_engine::{Engine, EngineModel};
use weft_repository::Repository as OnDisk;

pub use loading::{LoadModel, Loader};
pub use profiles::ProfileStore;

use crate::error::ServeError;
use crate::models::ModelTable;
use crate::repository::{IndexEntry, MemoryUse, Repository};
use curator::{Command, Curator, Done, Shelf};
use grouping::Groups;

/// Reads the disk.
pub type Look = Box<dyn Fn() -> Result<OnDisk, String> + Send + Sync>;

/// The models of a folder, served as far as they can be.
pub struct Library {
    commands: Sender<Command>,
    engine: Arc<Engine>,
    index: Arc<Mutex<Vec<IndexEntry>>>,
    taken_bytes: Arc<AtomicU64>,
    budget_bytes: u64,
    look: Look,
    has_applied: AtomicBool,
}

impl Library {
    /// A library that serves nothing yet. Models are loaded by the loader, served by the engine, found in the table, and take
    /// no more memory together than the budget; `look` reads the disk when an operator asks for a model.
    pub fn start(
        loader: Loader,
        engine: Arc<Engine>,
        table: Arc<ModelTable>,
        budget_bytes: u64,
        look: Look,
    ) -> std::io::Result<Self> {
        let index = Arc::<Mutex<Vec<IndexEntry>>>::default();
        let taken_bytes = Arc::<AtomicU64>::default();
        let curator = Curator {
            loader,
            engine: engine.clone(),
            table,
            budget_bytes,
            index: index.clone(),
            taken_bytes: taken_bytes.clone(),
            shelf: Shelf::default(),
            guest: None,
            groups: Groups::default(),
            group_bytes: 0,
            has_new_groups: false,
            rates_per_s: BTreeMap::new(),
        };
        let (commands, received) = channel();
        thread::Builder::new()
            .name("weft-library".into())
            .spawn(move || curator.work(&received))?;
        let has_applied = AtomicBool::new(false);
        Ok(Self { commands, engine, index, taken_bytes, budget_bytes, look, has_applied })
    }

    /// Serves what the disk has now, and returns when that is done. What cannot be served is in the index, with the reason;
    /// a version that was served before it broke goes on being served.
    pub fn apply(&self, repository: OnDisk) -> Result<(), ServeError> {
        let outcome = self.ask(|done| Command::Apply(Box::new(repository), done));
        self.has_applied.store(true, Ordering::Relaxed);
        outcome
    }

    /// What the models that are on the device take of its memory, at their largest batches, and their groups and mixes.
    pub fn memory_bytes(&self) -> u64 {
        self.taken_bytes.load(Ordering::Relaxed) + self.engine.mix_memory_bytes()
    }

    /// Serves a model beside those of the folder, which clients do not see, or no such model any more.
    pub(crate) fn host(&self, guest: Option<EngineModel>) -> Result<(), ServeError> {
        self.ask(|done| Command::Host(guest.map(Box::new), done))
    }

    /// Has models prepared with the kernels that the device takes now, and returns when they are served with them. A model
    /// that cannot be prepared goes on as it is.
    pub(crate) fn prepare_anew(&self, names: Vec<String>) -> Result<(), ServeError> {
        self.ask(|done| Command::PrepareAnew(names, done))
    }

    /// The models that are on the device, by name.
    pub(crate) fn residents(&self) -> Result<Vec<(String, EngineModel)>, ServeError> {
        let (told, residents) = channel();
        self.commands.send(Command::Residents(told)).map_err(|_| ServeError::Stopping)?;
        residents.recv().map_err(|_| ServeError::Stopping)
    }

    fn ask(&self, command: impl FnOnce(Done) -> Command) -> Result<(), ServeError> {
        let (done, is_done) = channel();
        self.commands.send(command(done)).map_err(|_| ServeError::Stopping)?;
        is_done.recv().unwrap_or(Err(ServeError::Stopping))
    }
}

impl Repository for Library {
    fn index(&self) -> Vec<IndexEntry> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn load(&self, name: &str, config: Option<&str>) -> Result<(), ServeError> {
        if config.is_some() {
            let what = "a configuration in a request to load".to_string();
            return Err(weft_protocol::ProtocolError::Unsupported(what).into());
        }
        // It may have been put there just now.
        let unreadable = |reason| ServeError::Unavailable { model: name.into(), reason };
        self.apply((self.look)().map_err(unreadable)?)?;
        self.ask(|done| Command::Load(name.into(), done))
    }

    fn unload(&self, name: &str) -> Result<(), ServeError> {
        self.ask(|done| Command::Unload(name.into(), done))
    }

    fn is_ready(&self) -> bool {
        self.has_applied.load(Ordering::Relaxed)
    }

    fn memory(&self) -> Option<MemoryUse> {
        Some(MemoryUse { taken_bytes: self.memory_bytes(), budget_bytes: self.budget_bytes })
    }

    fn wake(&self, name: &str) -> Result<(), ServeError> {
        self.ask(|done| Command::Wake(name.into(), done))
    }
}
