//! The door: the one place where a request for inference, whole and within its tenant's limits, is let in or declined before
//! it reaches the engine; and any request before it waits for a model to wake.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::sleep;

use crate::error::ServeError;

/// How often a closed door is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Lets requests in, and counts those that are inside.
#[derive(Debug)]
pub(crate) struct Door {
    is_closed: AtomicBool,
    inside: AtomicUsize,
    limit: usize,
}

/// A request that was let in; it is inside until this is dropped.
#[derive(Debug)]
pub(crate) struct Admitted(Arc<Door>);

impl Door {
    /// An open door for so many requests at once.
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { is_closed: AtomicBool::new(false), inside: AtomicUsize::new(0), limit })
    }

    /// Lets a request in, or says why not.
    pub(crate) fn admit(self: &Arc<Self>) -> Result<Admitted, ServeError> {
        // Counted before it is looked at: of two that come for the last place one sees the other.
        let inside = self.inside.fetch_add(1, Ordering::Relaxed);
        let admitted = Admitted(self.clone());
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(ServeError::Stopping);
        }
        if inside >= self.limit {
            return Err(ServeError::TooManyRequests { limit: self.limit });
        }
        Ok(admitted)
    }

    /// Lets nobody in any more.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// How many are inside.
    pub(crate) fn inside(&self) -> usize {
        self.inside.load(Ordering::Relaxed)
    }

    /// True where nobody is inside.
    pub(crate) fn is_empty(&self) -> bool {
        self.inside() == 0
    }

    /// Waits until nobody is inside; for a door that is closed.
    pub(crate) async fn emptied(&self) {
        while !self.is_empty() {
            sleep(LOOK).await;
        }
    }

    /// True until it is closed.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_closed.load(Ordering::Relaxed)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::Relaxed);
    }
}
