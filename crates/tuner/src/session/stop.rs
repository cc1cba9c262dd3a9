//! Whether a session should end early.

use std::sync::atomic::{AtomicBool, Ordering};

/// Asked for by whoever watches; the session then begins nothing new and decides with what it has.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Nobody has asked.
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Asks the session to end.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True where somebody has asked.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
