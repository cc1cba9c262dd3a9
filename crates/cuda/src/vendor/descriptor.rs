//! Descriptions that a library keeps on the host.

use std::ptr;

use super::functions::Code;
use crate::driver::CudaError;

/// One description; it is destroyed when this is dropped.
pub(super) struct Descriptor<T> {
    raw: *mut T,
    destroy: unsafe extern "C" fn(*mut T) -> Code,
}

// SAFETY: a description is memory of the host that the library only reads once it is filled in.
unsafe impl<T> Send for Descriptor<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Descriptor<T> {}

impl<T> Descriptor<T> {
    /// What `create` writes the handle of.
    ///
    /// # Safety
    /// `create` writes a handle that `destroy` destroys, or fails.
    pub(super) unsafe fn new(
        create: impl FnOnce(*mut *mut T) -> Result<(), CudaError>,
        destroy: unsafe extern "C" fn(*mut T) -> Code,
    ) -> Result<Self, CudaError> {
        let mut raw = ptr::null_mut();
        create(&mut raw)?;
        Ok(Self { raw, destroy })
    }

    pub(super) fn raw(&self) -> *mut T {
        self.raw
    }
}

impl<T> Drop for Descriptor<T> {
    fn drop(&mut self) {
        // SAFETY: the handle is this description's own, and nothing uses it any more.
        unsafe { (self.destroy)(self.raw) };
    }
}
