//! Places that callers give: for results, and with lists.

use std::slice;

use super::error::Code;

/// Writes a result where the caller wants it.
///
/// # Safety
/// `place` is null or can be written.
pub(super) unsafe fn give<T>(place: *mut T, value: T) -> Result<(), Code> {
    if place.is_null() {
        return Err(Code::InvalidValue);
    }
    // SAFETY: the caller vouches for the place.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// What the caller wrote somewhere.
///
/// # Safety
/// `place` is null or holds a value.
pub(super) unsafe fn take<T: Copy>(place: *const T) -> Result<T, Code> {
    if place.is_null() {
        return Err(Code::InvalidValue);
    }
    // SAFETY: the caller vouches for the place.
    Ok(unsafe { place.read_unaligned() })
}

/// A list of the caller's, copied.
///
/// # Safety
/// `first` is null or the first of `count` values.
pub(super) unsafe fn list<T: Copy>(first: *const T, count: usize) -> Result<Vec<T>, Code> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if first.is_null() || !first.is_aligned() {
        return Err(Code::InvalidValue);
    }
    // SAFETY: the caller vouches for the list, which is aligned.
    Ok(unsafe { slice::from_raw_parts(first, count) }.to_vec())
}
