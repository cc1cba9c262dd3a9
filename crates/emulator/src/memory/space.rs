//! Addresses that are reserved first and have memory put behind them later.

use std::collections::{BTreeMap, HashMap};

use super::pages::Pages;
use super::{FILLED_BYTES, FRESH, Refusal};

/// What reserved ranges and the memory behind them are multiples of.
pub(crate) const GRANULARITY_BYTES: u64 = 2 << 20;

/// Reserved ranges, by the address where they start, and the memory that stands behind parts of them or will.
#[derive(Default)]
pub(super) struct AddressSpace {
    ranges: BTreeMap<u64, Range>,
    memory: HashMap<u64, Physical>,
    last_handle: u64,
}

struct Range {
    pages: Pages,
    /// The pieces that have memory, by the address where they start.
    pieces: BTreeMap<u64, Piece>,
}

struct Piece {
    size_bytes: u64,
    handle: u64,
    is_open: bool,
}

struct Physical {
    size_bytes: u64,
    is_mapped: bool,
    is_released: bool,
}

impl AddressSpace {
    pub(super) fn reserve(&mut self, size_bytes: u64) -> Result<u64, Refusal> {
        check_size(size_bytes)?;
        let pages = Pages::reserve(size_bytes, GRANULARITY_BYTES).ok_or(Refusal::Full)?;
        let start = pages.start();
        self.ranges.insert(start, Range { pages, pieces: BTreeMap::new() });
        Ok(start)
    }

    pub(super) fn unreserve(&mut self, address: u64, size_bytes: u64) -> Result<(), Refusal> {
        let range = self.ranges.get(&address).ok_or(Refusal::Unfit)?;
        if range.pages.size_bytes() != size_bytes || !range.pieces.is_empty() {
            return Err(Refusal::Unfit);
        }
        self.ranges.remove(&address);
        Ok(())
    }

    pub(super) fn create(&mut self, size_bytes: u64) -> Result<u64, Refusal> {
        check_size(size_bytes)?;
        self.last_handle += 1;
        let memory = Physical { size_bytes, is_mapped: false, is_released: false };
        self.memory.insert(self.last_handle, memory);
        Ok(self.last_handle)
    }

    /// How much memory nobody has any more.
    pub(super) fn release(&mut self, handle: u64) -> Result<u64, Refusal> {
        let memory = self.memory.get_mut(&handle).filter(|memory| !memory.is_released);
        memory.ok_or(Refusal::Unfit)?.is_released = true;
        Ok(self.let_go(handle))
    }

    pub(super) fn map(
        &mut self,
        address: u64,
        size_bytes: u64,
        handle: u64,
    ) -> Result<(), Refusal> {
        let memory = self.memory.get_mut(&handle);
        let memory = memory
            .filter(|memory| !memory.is_released && !memory.is_mapped)
            .filter(|memory| memory.size_bytes == size_bytes)
            .ok_or(Refusal::Unfit)?;
        let range = range_around(&mut self.ranges, address, size_bytes)?;
        let end = address + size_bytes;
        let before = range.pieces.range(..end).next_back();
        if !address.is_multiple_of(GRANULARITY_BYTES)
            || before.is_some_and(|(start, piece)| start + piece.size_bytes > address)
        {
            return Err(Refusal::Unfit);
        }
        range.pieces.insert(address, Piece { size_bytes, handle, is_open: false });
        memory.is_mapped = true;
        Ok(())
    }

    /// Makes whole pieces accessible.
    pub(super) fn open(&mut self, address: u64, size_bytes: u64) -> Result<(), Refusal> {
        let range = range_around(&mut self.ranges, address, size_bytes)?;
        for start in starts_of(range, address, size_bytes)? {
            let Some(piece) = range.pieces.get_mut(&start) else { continue };
            if piece.is_open {
                continue;
            }
            if !range.pages.open(start, piece.size_bytes) {
                return Err(Refusal::Full);
            }
            range.pages.fill(start, piece.size_bytes.min(FILLED_BYTES), FRESH);
            piece.is_open = true;
        }
        Ok(())
    }

    /// Takes whole pieces away; how much memory nobody has any more.
    pub(super) fn unmap(&mut self, address: u64, size_bytes: u64) -> Result<u64, Refusal> {
        let range = range_around(&mut self.ranges, address, size_bytes)?;
        let mut handles = Vec::new();
        for start in starts_of(range, address, size_bytes)? {
            let Some(piece) = range.pieces.remove(&start) else { continue };
            range.pages.close(start, piece.size_bytes);
            handles.push(piece.handle);
        }
        let free = |handle| {
            if let Some(memory) = self.memory.get_mut(&handle) {
                memory.is_mapped = false;
            }
            self.let_go(handle)
        };
        Ok(handles.into_iter().map(free).sum())
    }

    /// The accessible neighbours of the piece around an address, and itself.
    pub(super) fn range_of(&self, address: u64) -> Option<(u64, u64)> {
        let (_, range) = self.ranges.range(..=address).next_back()?;
        let open = |(&start, piece): (&u64, &Piece)| {
            piece.is_open.then_some((start, start + piece.size_bytes))
        };
        let around = range.pieces.range(..=address).next_back();
        let (mut first, mut end) = around.and_then(open).filter(|&(_, end)| address < end)?;
        for (start, last) in range.pieces.range(..first).rev().map_while(open) {
            if last != first {
                break;
            }
            first = start;
        }
        for (start, last) in range.pieces.range(end..).map_while(open) {
            if start != end {
                break;
            }
            end = last;
        }
        Some((first, end))
    }

    /// Forgets memory that has neither a handle nor an address; its size, or zero where it has one of them.
    fn let_go(&mut self, handle: u64) -> u64 {
        let is_unused = |memory: &Physical| memory.is_released && !memory.is_mapped;
        match self.memory.get(&handle).is_some_and(is_unused) {
            true => self.memory.remove(&handle).map_or(0, |memory| memory.size_bytes),
            false => 0,
        }
    }
}

fn check_size(size_bytes: u64) -> Result<(), Refusal> {
    match size_bytes > 0 && size_bytes.is_multiple_of(GRANULARITY_BYTES) {
        true => Ok(()),
        false => Err(Refusal::Unfit),
    }
}

/// The reserved range that all of these addresses lie in.
fn range_around(
    ranges: &mut BTreeMap<u64, Range>,
    address: u64,
    size_bytes: u64,
) -> Result<&mut Range, Refusal> {
    let around = ranges.range_mut(..=address).next_back();
    let (start, range) = around.ok_or(Refusal::Unfit)?;
    let end = address.checked_add(size_bytes).ok_or(Refusal::Unfit)?;
    match size_bytes > 0 && end <= start + range.pages.size_bytes() {
        true => Ok(range),
        false => Err(Refusal::Unfit),
    }
}

/// Where the pieces start that are these addresses, one after another.
fn starts_of(range: &Range, address: u64, size_bytes: u64) -> Result<Vec<u64>, Refusal> {
    let end = address + size_bytes;
    let (mut starts, mut next) = (Vec::new(), address);
    for (&start, piece) in range.pieces.range(address..end) {
        if start != next {
            return Err(Refusal::Unfit);
        }
        starts.push(start);
        next = start + piece.size_bytes;
    }
    if next == end { Ok(starts) } else { Err(Refusal::Unfit) }
}
