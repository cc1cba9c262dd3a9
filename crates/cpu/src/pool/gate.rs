//! Owns the gate that the workers of one pool pass again and again, and at which they sleep while another pool has their cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Open unless someone holds it closed.
pub(super) struct Gate {
    /// How many hold it closed; changed under the lock only, so that no opening is missed.
    closings: AtomicUsize,
    lock: Mutex<()>,
    opened: Condvar,
}

impl Gate {
    /// A gate that nobody holds closed.
    pub(super) const fn open() -> Self {
        Self { closings: AtomicUsize::new(0), lock: Mutex::new(()), opened: Condvar::new() }
    }

    /// Sleeps while the gate is closed.
    #[inline]
    pub(super) fn pass(&self) {
        if self.is_closed() {
            self.wait_until_open();
        }
    }

    /// Closes the gate for as long as the result lives. Who is past it goes on until the next time.
    pub(super) fn close(&self) -> Closed<'_> {
        let _locked = self.locked();
        self.closings.fetch_add(1, Ordering::Relaxed);
        Closed(self)
    }

    /// Nothing is handed over at the gate, so its state needs no order with other memory.
    fn is_closed(&self) -> bool {
        self.closings.load(Ordering::Relaxed) > 0
    }

    #[cold]
    fn wait_until_open(&self) {
        let mut locked = self.locked();
        while self.is_closed() {
            locked = self.opened.wait(locked).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn locked(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds a gate closed.
pub(super) struct Closed<'gate>(&'gate Gate);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        let _locked = self.0.locked();
        if self.0.closings.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.opened.notify_all();
        }
    }
}
