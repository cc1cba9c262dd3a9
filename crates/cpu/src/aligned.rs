//! Owns buffers of `f32` that start on a cache line.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

const LINE_BYTES: usize = 64;

/// From this size on, memory comes from the operating system directly: it is zero already, may use huge pages, and goes
/// back at once.
#[cfg(target_os = "linux")]
const MAPPED_BYTES: usize = 1 << 20;

/// A buffer that could not be allocated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot allocate a buffer of {elements} f32 values")]
pub struct AllocationError {
    /// How many `f32` values were asked for.
    pub elements: usize,
}

/// A fixed-length buffer of `f32`, aligned to 64 bytes.
pub struct AlignedBuffer {
    start: NonNull<f32>,
    elements: usize,
}

// SAFETY: the buffer owns its memory and has no interior mutability.
unsafe impl Send for AlignedBuffer {}
// SAFETY: shared access only reads plain `f32` values.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// A buffer of `elements` zeros; the pages are touched only when first written.
    pub fn zeroed(elements: usize) -> Result<Self, AllocationError> {
        if elements == 0 {
            return Ok(Self::empty());
        }
        let layout = Self::layout(elements).ok_or(AllocationError { elements })?;
        let start = allocate(layout).ok_or(AllocationError { elements })?;
        Ok(Self { start: start.cast::<f32>(), elements })
    }

    /// A buffer without elements, which allocates nothing.
    pub const fn empty() -> Self {
        Self { start: NonNull::dangling(), elements: 0 }
    }

    fn layout(elements: usize) -> Option<Layout> {
        let bytes = elements.checked_mul(size_of::<f32>())?;
        Layout::from_size_align(bytes, LINE_BYTES).ok()
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if self.elements == 0 {
            return;
        }
        if let Some(layout) = Self::layout(self.elements) {
            // SAFETY: `start` came from `allocate` with this same layout.
            unsafe { release(self.start.cast::<u8>(), layout) }
        }
    }
}

/// Zeroed memory for a layout whose size is not zero.
fn allocate(layout: Layout) -> Option<NonNull<u8>> {
    #[cfg(target_os = "linux")]
    if layout.size() >= MAPPED_BYTES {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping at an address of the system's choice touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), layout.size(), access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the range was just mapped. Huge pages are a wish; refusal changes nothing but speed.
        unsafe { libc::madvise(start, layout.size(), libc::MADV_HUGEPAGE) };
        return NonNull::new(start.cast::<u8>());
    }
    // SAFETY: the layout's size is not zero.
    NonNull::new(unsafe { alloc_zeroed(layout) })
}

/// Gives memory back.
///
/// # Safety
///
/// `start` came from [`allocate`] with the same layout, and is not used any more.
unsafe fn release(start: NonNull<u8>, layout: Layout) {
    #[cfg(target_os = "linux")]
    if layout.size() >= MAPPED_BYTES {
        // SAFETY: the caller's promise: this is the whole mapping. It cannot fail for a mapping that exists.
        unsafe { libc::munmap(start.as_ptr().cast(), layout.size()) };
        return;
    }
    // SAFETY: the caller's promise: the memory came from the allocator with this layout.
    unsafe { dealloc(start.as_ptr(), layout) }
}

impl Deref for AlignedBuffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: `start` is valid for `elements` initialised values, or dangling with none.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.elements) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in `deref`, and `&mut self` makes the access unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.elements) }
    }
}

impl std::fmt::Debug for AlignedBuffer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AlignedBuffer").field("elements", &self.elements).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_aligned_zeroed_and_bounded() {
        for elements in [0, 1, 15, 16, 17, 100_003, 1_000_003] {
            let mut buffer = AlignedBuffer::zeroed(elements).unwrap();
            assert_eq!(buffer.len(), elements);
            assert!(buffer.iter().all(|&value| value == 0.0));
            if elements > 0 {
                assert_eq!(buffer.as_ptr() as usize % LINE_BYTES, 0);
            }
            buffer.fill(1.0);
        }
        for elements in [usize::MAX, usize::MAX / 4, isize::MAX as usize / 4] {
            assert_eq!(AlignedBuffer::zeroed(elements).unwrap_err(), AllocationError { elements });
        }
    }
}
