//! Handles: numbers that stand for what the driver keeps for its callers, and that are never given out twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::Code;

/// What a caller takes for a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub(super) struct Handle(usize);

impl Handle {
    /// No handle.
    pub(super) const NULL: Self = Self(0);

    pub(super) fn is_null(self) -> bool {
        self == Self::NULL
    }

    /// One that nothing has yet. The first page holds none, so that none is a special value of CUDA.
    pub(super) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(4096);
        Self(NEXT.fetch_add(16, Ordering::Relaxed))
    }
}

/// All things of one kind that callers have handles of.
pub(super) struct Handles<T>(Mutex<BTreeMap<Handle, Arc<T>>>);

impl<T> Handles<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Keeps something, and gives the handle of it.
    pub(super) fn keep(&self, kept: impl Into<Arc<T>>) -> Handle {
        let handle = Handle::new();
        self.lock().insert(handle, kept.into());
        handle
    }

    /// What a handle stands for.
    pub(super) fn get(&self, handle: Handle) -> Result<Arc<T>, Code> {
        self.lock().get(&handle).cloned().ok_or(Code::InvalidHandle)
    }

    /// Keeps it no longer.
    pub(super) fn take(&self, handle: Handle) -> Result<Arc<T>, Code> {
        self.lock().remove(&handle).ok_or(Code::InvalidHandle)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Handle, Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
