//! Memory as threads see it: which of the host's an address stands for, and that it may be used so.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::ptx::SHARED_START;
use super::ptx::instruction::Space;
use crate::memory::Memory;

/// Where addresses of any space stand for shared memory, a thread's own memory, parameters, and constants. Device memory has the
/// host's addresses, which are all below.
const SHARED_WINDOW: u64 = 1 << 56;
const LOCAL_WINDOW: u64 = 2 << 56;
const PARAMETER_WINDOW: u64 = 3 << 56;
const CONSTANT_WINDOW: u64 = 4 << 56;
const IN_WINDOW: u64 = (1 << 56) - 1;

/// The bits of an address of shared memory that say where in a block's. Those above say whose: one more than its rank in the
/// cluster, or nothing for a block's own.
const OFFSET_BITS: u32 = 24;

/// Allocations that are remembered, since finding one takes a lock.
const REMEMBERED: usize = 8;

/// An address of one space as one of any.
pub(super) fn to_any(space: Space, address: u64) -> u64 {
    match space {
        Space::Any => address,
        Space::Shared => SHARED_WINDOW | address,
        Space::Local => LOCAL_WINDOW | address,
        Space::Parameters => PARAMETER_WINDOW | address,
        Space::Constants => CONSTANT_WINDOW | address,
    }
}

/// An address of any space as one of the space that it lies in.
pub(super) fn from_any(space: Space, address: u64) -> u64 {
    if space == Space::Any { address } else { address & IN_WINDOW }
}

/// An address of a block's shared memory as the others of its cluster have it.
pub(super) fn mapped_to(address: u64, rank: u64) -> u64 {
    (address & ((1 << OFFSET_BITS) - 1)) | (rank + 1) << OFFSET_BITS
}

/// The space that an address lies in, and where there.
pub(super) fn found(space: Space, address: u64) -> (Space, u64) {
    if space != Space::Any {
        // Addresses of shared memory have 32 bits, wherever they are kept.
        let bits = if space == Space::Shared { u64::from(u32::MAX) } else { u64::MAX };
        return (space, address & bits);
    }
    match address & !IN_WINDOW {
        SHARED_WINDOW => (Space::Shared, address & IN_WINDOW),
        LOCAL_WINDOW => (Space::Local, address & IN_WINDOW),
        PARAMETER_WINDOW => (Space::Parameters, address & IN_WINDOW),
        CONSTANT_WINDOW => (Space::Constants, address & IN_WINDOW),
        _ => (Space::Any, address),
    }
}

/// The rank of the block that an address of shared memory belongs to, seen from a block, and where in its memory.
pub(super) fn shared_place(address: u64, own_rank: usize) -> (usize, usize) {
    let owner = (address >> OFFSET_BITS) as usize;
    let offset = (address & ((1 << OFFSET_BITS) - 1)) as usize;
    (if owner == 0 { own_rank } else { owner - 1 }, offset)
}

/// Some bytes of the host's memory that stand for a GPU's, all of which may be used.
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    start: *mut u8,
    count: usize,
}

impl Bytes {
    /// Reads a number of up to eight bytes, which lies as such numbers must.
    pub(super) fn read(self, offset: usize, bytes: usize) -> u64 {
        assert!(offset + bytes <= self.count);
        let at = self.start.wrapping_add(offset);
        // SAFETY: the bytes are within those that may be used, lie at a multiple of their number, and are touched by kernels
        // and copies alone, which other threads may run: so accesses are atomic.
        unsafe {
            match bytes {
                1 => AtomicU8::from_ptr(at).load(Ordering::Relaxed).into(),
                2 => AtomicU16::from_ptr(at.cast()).load(Ordering::Relaxed).into(),
                4 => AtomicU32::from_ptr(at.cast()).load(Ordering::Relaxed).into(),
                _ => AtomicU64::from_ptr(at.cast()).load(Ordering::Relaxed),
            }
        }
    }

    /// Writes one.
    pub(super) fn write(self, offset: usize, bytes: usize, value: u64) {
        assert!(offset + bytes <= self.count);
        let at = self.start.wrapping_add(offset);
        // SAFETY: as for reading.
        unsafe {
            match bytes {
                1 => AtomicU8::from_ptr(at).store(value as u8, Ordering::Relaxed),
                2 => AtomicU16::from_ptr(at.cast()).store(value as u16, Ordering::Relaxed),
                4 => AtomicU32::from_ptr(at.cast()).store(value as u32, Ordering::Relaxed),
                _ => AtomicU64::from_ptr(at.cast()).store(value, Ordering::Relaxed),
            }
        }
    }

    /// Writes a number of two, four or eight bytes where another one is, in one with reading it; what is there where that is not the
    /// one that was expected.
    pub(super) fn exchange(self, bytes: usize, expected: u64, value: u64) -> Result<(), u64> {
        const ORDER: Ordering = Ordering::SeqCst;
        assert!(bytes <= self.count);
        let at = self.start;
        // SAFETY: as for reading.
        unsafe {
            match bytes {
                2 => AtomicU16::from_ptr(at.cast())
                    .compare_exchange(expected as u16, value as u16, ORDER, ORDER)
                    .map_or_else(|found| Err(found.into()), |_| Ok(())),
                4 => AtomicU32::from_ptr(at.cast())
                    .compare_exchange(expected as u32, value as u32, ORDER, ORDER)
                    .map_or_else(|found| Err(found.into()), |_| Ok(())),
                _ => AtomicU64::from_ptr(at.cast())
                    .compare_exchange(expected, value, ORDER, ORDER)
                    .map(|_| ()),
            }
        }
    }

    /// All of them.
    pub(super) fn to_vec(self) -> Vec<u8> {
        (0..self.count).map(|offset| self.read(offset, 1) as u8).collect()
    }

    /// Writes as many bytes.
    pub(super) fn fill_from(self, bytes: &[u8]) {
        bytes.iter().enumerate().for_each(|(offset, byte)| self.write(offset, 1, (*byte).into()));
    }
}

/// Memory of one block, or of one thread.
pub(super) struct OwnMemory {
    words: Vec<u64>,
    start: usize,
    end: usize,
}

impl OwnMemory {
    /// Memory at the addresses from `start` to `end`, filled with what is not a number.
    pub(super) fn new(start: usize, end: usize) -> Self {
        Self { words: vec![u64::MAX; end.div_ceil(size_of::<u64>())], start, end }
    }

    /// A block's shared memory.
    pub(super) fn shared(end: usize) -> Self {
        Self::new(SHARED_START as usize, end)
    }

    pub(super) fn at(&mut self, offset: usize, count: usize) -> Option<Bytes> {
        let is_inside = offset >= self.start && offset.checked_add(count)? <= self.end;
        is_inside.then(|| {
            let start = self.words.as_mut_ptr().cast::<u8>().wrapping_add(offset);
            Bytes { start, count }
        })
    }
}

/// The device's memory as one launch sees it.
pub(super) struct DeviceMemory<'a> {
    memory: &'a Memory,
    remembered: [(u64, u64); REMEMBERED],
    oldest: usize,
}

impl<'a> DeviceMemory<'a> {
    pub(super) fn new(memory: &'a Memory) -> Self {
        Self { memory, remembered: [(0, 0); REMEMBERED], oldest: 0 }
    }

    pub(super) fn at(&mut self, address: u64, count: usize) -> Option<Bytes> {
        let end = address.checked_add(count as u64)?;
        let holds = |(first, past): &(u64, u64)| *first <= address && end <= *past;
        if !self.remembered.iter().any(holds) {
            let range = self.memory.range_of(address).filter(holds)?;
            self.remembered[self.oldest] = range;
            self.oldest = (self.oldest + 1) % REMEMBERED;
        }
        Some(Bytes { start: std::ptr::with_exposed_provenance_mut(address as usize), count })
    }
}

/// Some of the bytes of a launch's parameters, or of a program's constants, which nobody writes.
pub(super) fn unchanging(all: &[u8], offset: u64, count: usize) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    all.get(start..start.checked_add(count)?)
}
