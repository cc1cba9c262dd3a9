//! Pages of the host's memory.

use std::ptr;

/// Addresses that nothing else has; memory stands behind those that are open.
pub(super) struct Pages {
    /// What was asked of the system, which the part in use lies in.
    mapped: (u64, usize),
    start: u64,
    size_bytes: u64,
}

impl Pages {
    /// Addresses behind which there is nothing, from a multiple of `alignment_bytes` on, a power of two.
    pub(super) fn reserve(size_bytes: u64, alignment_bytes: u64) -> Option<Self> {
        let mapped_bytes = usize::try_from(size_bytes.checked_add(alignment_bytes - 1)?).ok()?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping wherever the system wants it takes nothing from anybody.
        let mapped =
            unsafe { libc::mmap(ptr::null_mut(), mapped_bytes, libc::PROT_NONE, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return None;
        }
        let mapped = mapped as u64;
        let start = mapped.next_multiple_of(alignment_bytes);
        Some(Self { mapped: (mapped, mapped_bytes), start, size_bytes })
    }

    /// The first address.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// How many addresses there are.
    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Puts memory behind addresses from the start of a page on; false where the system has none left.
    pub(super) fn open(&self, address: u64, size_bytes: u64) -> bool {
        self.check(address, size_bytes);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the addresses are of this mapping, which nothing else knows of.
        unsafe { libc::mprotect(address as *mut libc::c_void, size_bytes as usize, access) == 0 }
    }

    /// Takes the memory behind addresses away again.
    pub(super) fn close(&self, address: u64, size_bytes: u64) {
        self.check(address, size_bytes);
        let (at, size) = (address as *mut libc::c_void, size_bytes as usize);
        // SAFETY: the addresses are of this mapping; whoever has it closed says that nobody uses them any more.
        unsafe {
            libc::mprotect(at, size, libc::PROT_NONE);
            libc::madvise(at, size, libc::MADV_DONTNEED);
        }
    }

    /// Fills open memory with one byte.
    pub(super) fn fill(&self, address: u64, size_bytes: u64, byte: u8) {
        self.check(address, size_bytes);
        // SAFETY: the memory is open, and nothing else uses it yet.
        unsafe { ptr::write_bytes(address as *mut u8, byte, size_bytes as usize) };
    }

    fn check(&self, address: u64, size_bytes: u64) {
        let is_inside = address >= self.start
            && size_bytes <= self.size_bytes
            && address - self.start <= self.size_bytes - size_bytes;
        assert!(is_inside, "{size_bytes} bytes at {address:#x} are no part of these pages");
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let (start, size_bytes) = self.mapped;
        // SAFETY: the mapping is this value's own; whoever drops it says that nobody uses it any more.
        unsafe { libc::munmap(start as *mut libc::c_void, size_bytes) };
    }
}
