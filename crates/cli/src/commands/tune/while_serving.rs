//! Tuning by a server of what it serves, beside serving it: begun here, watched from here.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use weft_server::{TuningDocument, TuningRequest, TuningState};

use super::options::Options;
use super::report;
use super::view::View;
use crate::administration::Administration;

const PATH: &str = "/tuning";

/// How often the server is asked how far it is.
const LOOK: Duration = Duration::from_millis(200);

pub(super) fn run(options: &Options, address: &str) -> Result<ExitCode> {
    let server = Administration::named(address);
    let request = serde_json::to_string(&TuningRequest {
        models: options.models.clone(),
        batches: options.batches.clone(),
        budget_s: options.budget.map(|budget| budget.as_secs_f64()),
        trials: Some(options.trials),
        effort_ms: Some(options.effort),
    })?;
    let is_interrupted = watch_interruptions()?;
    let mut document: TuningDocument = server.change("POST", PATH, &request)?;
    let mut view = View::new();
    view.show(["server".to_string()]);
    let mut is_asked = false;
    while document.state == TuningState::Running {
        thread::sleep(LOOK);
        if is_interrupted.load(Ordering::Relaxed) && !is_asked {
            server.change::<TuningDocument>("DELETE", PATH, "")?;
            is_asked = true;
        }
        document = server.get(PATH).context("what was found until now is kept")?;
        if let Some(progress) = &document.progress {
            view.update(0, progress);
        }
    }
    view.clear();
    report::print(options, &document.reports, Path::new(&document.database))?;
    match document.error {
        Some(error) => bail!("tuning has ended early, and what was found is kept: {error}"),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Becomes true when somebody interrupts this process, which lives on: it has the server end, and says what was found. A
/// second interruption ends it.
fn watch_interruptions() -> Result<Arc<AtomicBool>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let is_interrupted = Arc::new(AtomicBool::new(false));
    let told = is_interrupted.clone();
    thread::spawn(move || {
        while runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            if told.swap(true, Ordering::Relaxed) {
                std::process::exit(i32::from(crate::BAD_INPUT));
            }
        }
    });
    Ok(is_interrupted)
}
