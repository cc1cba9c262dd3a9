//! Tuning of the kernels of what is served, as a tenant of its engine.

mod agenda;
mod document;
mod effort;
mod error;
mod guest;
mod journal;
mod session;

pub use document::{TuningDocument, TuningRequest, TuningState};
pub use error::TuningError;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use weft_device::{TunableDevice, UnitSet};
use weft_engine::{Engine, spawn_beside};

use crate::library::Library;
use journal::Journal;
use session::{Control, Session};

/// What is tuned beside what.
pub struct TuningHost {
    /// Serves on a [`HostDevice`](weft_tuner::tenant::HostDevice).
    pub engine: Arc<Engine>,
    /// What is served.
    pub library: Arc<Library>,
    /// The device.
    pub device: Arc<dyn TunableDevice>,
    /// The units of it that are used.
    pub units: UnitSet,
    /// The file that has what was found.
    pub database: PathBuf,
}

/// Sessions of tuning, one at a time. A session that is under way ends when this is dropped.
pub struct KernelTuning {
    host: Arc<TuningHost>,
    journal: Journal,
    /// The last one.
    session: Mutex<Option<Running>>,
}

struct Running {
    control: Arc<Control>,
    thread: JoinHandle<()>,
}

impl KernelTuning {
    /// Nothing is tuned yet.
    pub fn new(host: TuningHost) -> Self {
        Self { host: Arc::new(host), journal: Journal::default(), session: Mutex::default() }
    }

    /// Begins a session, and returns when it is under way.
    pub fn start(&self, request: TuningRequest) -> Result<(), TuningError> {
        let mut session = self.session();
        if session.as_ref().is_some_and(|session| !session.thread.is_finished()) {
            return Err(TuningError::UnderWay);
        }
        let control = Arc::<Control>::default();
        let (host, journal) = (self.host.clone(), self.journal.clone());
        let (begun, has_begun) = channel();
        let work = {
            let control = control.clone();
            move || {
                let session = Session::new(host, &request, journal.clone(), control.clone());
                let session = match session {
                    Ok(session) => session,
                    Err(error) => return drop(begun.send(Err(error))),
                };
                // Whoever asked waits for this.
                let _ = begun.send(Ok(()));
                let ended = run(&session);
                let state = match &ended {
                    Err(_) => TuningState::Failed,
                    Ok(()) if control.stop.is_asked() => TuningState::Stopped,
                    Ok(()) => TuningState::Done,
                };
                tracing::info!(?state, "tuning has ended");
                journal.write(|document| {
                    document.state = state;
                    document.error = ended.err().map(|error| error.to_string());
                    document.progress = None;
                });
            }
        };
        let thread = spawn_beside("weft-tuning", work)?;
        let broken = || TuningError::Broken("it has not begun".into());
        has_begun.recv().map_err(|_| broken())??;
        tracing::info!("tuning beside what is served");
        *session = Some(Running { control, thread });
        Ok(())
    }

    /// Where the session at hand stands, or else the last one.
    pub fn document(&self) -> TuningDocument {
        self.journal.document()
    }

    /// Has a session end soon that is under way; what it found by then is kept and put to use.
    pub fn stop(&self) {
        if let Some(session) = &*self.session() {
            session.control.stop.ask();
        }
    }

    /// Has a session end that is under way, and returns when it has; nothing is put to use any more.
    pub fn end(&self) {
        if let Some(Running { control, thread }) = self.session().take() {
            control.is_leaving.store(true, Ordering::Relaxed);
            control.stop.ask();
            let _ = thread.join();
        }
    }

    fn session(&self) -> MutexGuard<'_, Option<Running>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a session to its end, whatever that is.
fn run(session: &Session) -> Result<(), TuningError> {
    let ran = catch_unwind(AssertUnwindSafe(|| session.run()));
    ran.unwrap_or_else(|_| {
        session.leave();
        Err(TuningError::Broken("a panic".into()))
    })
}

impl Drop for KernelTuning {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for KernelTuning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.document().state;
        formatter.debug_struct("KernelTuning").field("state", &state).finish_non_exhaustive()
    }
}
