//! Tuning beside what is served: begun, looked at and ended.

use std::sync::Arc;

use ::http::Method;
use hyper::body::Incoming;
use tokio::task::spawn_blocking;

use super::error::AdminError;
use crate::http::read_body;
use crate::inference::Serving;
use crate::limits::Limits;
use crate::tuning::{KernelTuning, TuningError};

/// The longest request.
const MAX_REQUEST_BYTES: usize = 1 << 20;

/// Does what a request asks for; says how the session stands then.
pub(super) async fn answer(
    serving: &Serving,
    method: &Method,
    body: Incoming,
) -> Result<String, AdminError> {
    let tuning = serving.tuning.clone().ok_or(AdminError::NoTuning)?;
    match *method {
        Method::GET => {}
        Method::DELETE => {
            apart(&tuning, |tuning| {
                tuning.stop();
                Ok(())
            })
            .await?
        }
        Method::POST => {
            let limits = Limits { body_bytes: MAX_REQUEST_BYTES, ..serving.limits.clone() };
            let body = read_body(body, &limits).await.map_err(AdminError::Body)?;
            let request = serde_json::from_slice(&body)
                .map_err(|error| AdminError::WrongBody(error.to_string()))?;
            apart(&tuning, |tuning| tuning.start(request)).await?;
        }
        _ => {
            let allowed = "GET, POST and DELETE";
            return Err(AdminError::WrongMethod { path: "/tuning".into(), allowed });
        }
    }
    // Documents are made of texts, numbers and lists, which can always be written.
    Ok(serde_json::to_string(&tuning.document()).unwrap_or_default())
}

/// Does what may take a while on a thread that nobody else waits for.
async fn apart(
    tuning: &Arc<KernelTuning>,
    work: impl FnOnce(&KernelTuning) -> Result<(), TuningError> + Send + 'static,
) -> Result<(), AdminError> {
    let tuning = tuning.clone();
    let done = spawn_blocking(move || work(&tuning)).await;
    let broken = |_| Err(TuningError::Broken("a panic".into()));
    done.unwrap_or_else(broken).map_err(AdminError::Tuning)
}
