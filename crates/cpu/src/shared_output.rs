//! Memory that several workers write at once, each its own part.

use std::marker::PhantomData;
use std::slice;

/// A mutable slice that is shared among the workers of a run. Each worker writes elements that no other worker
/// touches between two barriers; the methods that hand out slices are unsafe because only the caller knows that.
pub struct SharedOutput<'a, T> {
    start: *mut T,
    len: usize,
    owner: PhantomData<&'a mut [T]>,
}

impl<T> Clone for SharedOutput<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SharedOutput<'_, T> {}

// SAFETY: it is a slice of `T`; what is done with it from several threads is up to callers of its unsafe methods.
unsafe impl<T: Send> Send for SharedOutput<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SharedOutput<'_, T> {}

impl<'a, T> SharedOutput<'a, T> {
    /// Shares a slice for as long as it is borrowed.
    pub fn new(slice: &'a mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), owner: PhantomData }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first element.
    pub fn as_mut_ptr(&self) -> *mut T {
        self.start
    }

    /// The part of `len` elements from `start` on.
    pub fn part(&self, start: usize, len: usize) -> SharedOutput<'a, T> {
        assert!(start <= self.len && len <= self.len - start, "part {start}+{len} of {}", self.len);
        // SAFETY: `start` is inside the slice or one past its end, as just checked.
        SharedOutput { start: unsafe { self.start.add(start) }, len, owner: PhantomData }
    }

    /// Elements to read.
    ///
    /// # Safety
    ///
    /// No worker writes any of these elements while the slice is in use.
    pub unsafe fn slice(&self, start: usize, len: usize) -> &'a [T] {
        let part = self.part(start, len);
        // SAFETY: the part lies inside a live slice; the caller keeps writers away.
        unsafe { slice::from_raw_parts(part.start, len) }
    }

    /// Elements to write.
    ///
    /// # Safety
    ///
    /// No other slice of any of these elements is in use at the same time, on any worker.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice_mut(&self, start: usize, len: usize) -> &'a mut [T] {
        let part = self.part(start, len);
        // SAFETY: the part lies inside a live, mutably borrowed slice; the caller keeps everyone else away.
        unsafe { slice::from_raw_parts_mut(part.start, len) }
    }
}
