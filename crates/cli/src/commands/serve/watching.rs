//! The thread that looks at the repository again and again, and has what changed served.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;

use anyhow::Result;
use weft_repository::{DEFAULT_INTERVAL, Repository, Settings, Watch};
use weft_server::Library;

use super::sources::Sources;

/// Watches until this is dropped.
pub(super) struct Watching {
    _end: Sender<()>,
}

/// Has the library serve what changed, and `follow` hear of the settings.
pub(super) fn start(
    sources: Sources,
    from: Repository,
    library: Arc<Library>,
    follow: impl Fn(&Settings) + Send + 'static,
) -> Result<Watching> {
    let (end, ended) = channel::<()>();
    let wait = move |interval| match ended.recv_timeout(interval) {
        Err(RecvTimeoutError::Timeout) => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    };
    let watch = Watch::new(from, DEFAULT_INTERVAL, move || sources.look(), wait);
    let work = move || {
        for state in watch {
            match state {
                Ok(repository) => {
                    tell_problems(&repository);
                    // Before the models: what is no longer somebody's is not shown for as long as loading takes.
                    if let Some(settings) = &repository.settings.settings {
                        follow(settings);
                    }
                    // The library ends before the watch does when the server stops.
                    let _ = library.apply(repository);
                }
                Err(error) => tracing::error!(%error, "the repository cannot be read"),
            }
        }
    };
    thread::Builder::new().name("weft-watch".into()).spawn(work)?;
    Ok(Watching { _end: end })
}

/// What is wrong with some models leaves the others.
pub(super) fn tell_problems(repository: &Repository) {
    for problem in repository.all_problems() {
        tracing::warn!("{problem}");
    }
    for note in repository.all_notes() {
        tracing::info!("{note}");
    }
}
