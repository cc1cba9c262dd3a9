//! Owns the sleep of workers that wait for what other workers change.

use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Workers that sleep until something has changed.
#[derive(Default)]
pub(crate) struct Sleepers {
    /// How many sleep, or are about to.
    count: AtomicUsize,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Sleepers {
    /// Sleeps until it is over. `is_over` may unwind.
    #[cold]
    pub(crate) fn sleep_until(&self, is_over: impl Fn() -> bool) {
        self.count.fetch_add(1, Ordering::Relaxed);
        // Either this worker sees the change, or who made it sees that this worker sleeps.
        fence(Ordering::SeqCst);
        let awake = Awake(&self.count);
        let mut locked = self.locked();
        while !is_over() {
            locked = self.changed.wait(locked).unwrap_or_else(PoisonError::into_inner);
        }
        drop(awake);
    }

    /// Something has changed that sleepers wait for.
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Relaxed) > 0 {
            // Who holds the lock looks again before it sleeps.
            drop(self.locked());
            self.changed.notify_all();
        }
    }

    fn locked(&self) -> MutexGuard<'_, ()> {
        // A worker that unwinds in its sleep leaves nothing half done.
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a sleeper out, however its sleep ends.
struct Awake<'a>(&'a AtomicUsize);

impl Drop for Awake<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
