//! What is allocated of the device's memory. Addresses are those of the host's memory that stands for it.

mod pages;
mod space;

use std::collections::BTreeMap;
use std::env;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pages::Pages;
use space::AddressSpace;

pub(crate) use space::GRANULARITY_BYTES;

/// How much memory the device has, in MiB.
const SIZE: (&str, u64) = ("WEFT_EMULATOR_MEMORY_MIB", 8192);

/// What fresh memory holds: floats of it are no numbers, so that reading what was never written shows.
const FRESH: u8 = 0xFF;

/// How much of an allocation is filled when it is made. The rest is zero, and costs nothing until it is used.
const FILLED_BYTES: u64 = 64 << 20;

/// Why memory is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is not enough of it.
    Full,
    /// An address, a size or a handle is none that fits what was asked for.
    Unfit,
}

/// The memory of the device, and that of the host which the device can use by itself.
pub(crate) struct Memory {
    total_bytes: u64,
    table: RwLock<Table>,
}

#[derive(Default)]
struct Table {
    device: BTreeMap<u64, Block>,
    host: BTreeMap<u64, Block>,
    space: AddressSpace,
    used_bytes: u64,
}

/// An allocation, by the address where it starts.
struct Block {
    size_bytes: u64,
    /// It owns what is allocated.
    _pages: Pages,
}

impl Memory {
    /// That of this process, as large as its environment says.
    pub(crate) fn of_process() -> &'static Self {
        static MEMORY: OnceLock<Memory> = OnceLock::new();
        MEMORY.get_or_init(|| {
            let (name, usual) = SIZE;
            let size = env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
            Self::new(size.saturating_mul(1 << 20))
        })
    }

    /// Memory of so many bytes, all of them free.
    pub(crate) fn new(total_bytes: u64) -> Self {
        Self { total_bytes, table: RwLock::default() }
    }

    /// How much the device has.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// How much of it nobody has.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.total_bytes - self.read().used_bytes
    }

    /// The first address and the one after the last of the accessible memory around an address.
    pub(crate) fn range_of(&self, address: u64) -> Option<(u64, u64)> {
        let table = self.read();
        let in_blocks = |blocks: &BTreeMap<u64, Block>| {
            let (&start, block) = blocks.range(..=address).next_back()?;
            let end = start + block.size_bytes;
            (address < end).then_some((start, end))
        };
        in_blocks(&table.device)
            .or_else(|| table.space.range_of(address))
            .or_else(|| in_blocks(&table.host))
    }

    /// True where all bytes of a range are accessible.
    pub(crate) fn contains(&self, address: u64, size_bytes: u64) -> bool {
        let end = address.checked_add(size_bytes);
        self.range_of(address).is_some_and(|(_, last)| end.is_some_and(|end| end <= last))
    }

    /// New memory of the device; the address where it starts.
    pub(crate) fn allocate(&self, size_bytes: u64) -> Result<u64, Refusal> {
        self.write().take(self.total_bytes, size_bytes)?;
        let made = new_block(size_bytes);
        let mut table = self.write();
        let Ok((address, block)) = made else {
            table.used_bytes -= size_bytes;
            return Err(Refusal::Full);
        };
        table.device.insert(address, block);
        Ok(address)
    }

    /// Gives back what [`Memory::allocate`] gave. Nothing may be using it.
    pub(crate) fn free(&self, address: u64) -> Result<(), Refusal> {
        let mut table = self.write();
        let block = table.device.remove(&address).ok_or(Refusal::Unfit)?;
        table.used_bytes -= block.size_bytes;
        Ok(())
    }

    /// New memory of the host, which the device can use.
    pub(crate) fn allocate_host(&self, size_bytes: u64) -> Result<u64, Refusal> {
        if size_bytes == 0 {
            return Err(Refusal::Unfit);
        }
        let (address, block) = new_block(size_bytes)?;
        self.write().host.insert(address, block);
        Ok(address)
    }

    /// Gives back what [`Memory::allocate_host`] gave. Nothing may be using it.
    pub(crate) fn free_host(&self, address: u64) -> Result<(), Refusal> {
        self.write().host.remove(&address).ok_or(Refusal::Unfit)?;
        Ok(())
    }

    /// A range of addresses without memory behind them.
    pub(crate) fn reserve(&self, size_bytes: u64) -> Result<u64, Refusal> {
        self.write().space.reserve(size_bytes)
    }

    /// Gives a whole range of addresses back, behind which there is no memory any more.
    pub(crate) fn unreserve(&self, address: u64, size_bytes: u64) -> Result<(), Refusal> {
        self.write().space.unreserve(address, size_bytes)
    }

    /// Memory that has no address yet; its handle.
    pub(crate) fn create(&self, size_bytes: u64) -> Result<u64, Refusal> {
        let mut table = self.write();
        let handle = table.space.create(size_bytes)?;
        let taken = table.take(self.total_bytes, size_bytes);
        if taken.is_err() {
            table.space.release(handle)?;
        }
        taken.map(|()| handle)
    }

    /// Gives a handle back. Where the memory has an address, it stays until that is taken from it.
    pub(crate) fn release(&self, handle: u64) -> Result<(), Refusal> {
        let mut table = self.write();
        table.used_bytes -= table.space.release(handle)?;
        Ok(())
    }

    /// Puts memory behind reserved addresses, where it is not accessible yet.
    pub(crate) fn map(&self, address: u64, size_bytes: u64, handle: u64) -> Result<(), Refusal> {
        self.write().space.map(address, size_bytes, handle)
    }

    /// Makes the memory behind addresses accessible.
    pub(crate) fn open(&self, address: u64, size_bytes: u64) -> Result<(), Refusal> {
        self.write().space.open(address, size_bytes)
    }

    /// Takes the memory behind addresses away. Nothing may be using it.
    pub(crate) fn unmap(&self, address: u64, size_bytes: u64) -> Result<(), Refusal> {
        let mut table = self.write();
        table.used_bytes -= table.space.unmap(address, size_bytes)?;
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn take(&mut self, total_bytes: u64, size_bytes: u64) -> Result<(), Refusal> {
        if size_bytes == 0 {
            return Err(Refusal::Unfit);
        }
        if size_bytes > total_bytes - self.used_bytes {
            return Err(Refusal::Full);
        }
        self.used_bytes += size_bytes;
        Ok(())
    }
}

fn new_block(size_bytes: u64) -> Result<(u64, Block), Refusal> {
    let pages = Pages::reserve(size_bytes, 1).ok_or(Refusal::Full)?;
    if !pages.open(pages.start(), size_bytes) {
        return Err(Refusal::Full);
    }
    pages.fill(pages.start(), size_bytes.min(FILLED_BYTES), FRESH);
    Ok((pages.start(), Block { size_bytes, _pages: pages }))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn byte_at(address: u64) -> u8 {
        // SAFETY: every test looks at memory that it has.
        unsafe { (address as *const u8).read() }
    }

    #[test]
    fn an_address_leads_to_the_allocation_around_it_and_to_nothing_past_its_end() {
        let memory = Memory::new(1 << 20);
        let [first, second] = [1000, 24].map(|size| memory.allocate(size).unwrap());
        let host = memory.allocate_host(10).unwrap();
        for (start, size) in [(first, 1000), (second, 24), (host, 10)] {
            assert_eq!(start % 512, 0);
            for inside in [start, start + size - 1] {
                assert_eq!(memory.range_of(inside), Some((start, start + size)));
            }
            assert_eq!(memory.range_of(start + size), None);
            assert!(memory.contains(start + 1, size - 1) && !memory.contains(start + 1, size));
            assert!(!memory.contains(start, u64::MAX));
            assert_eq!((byte_at(start), byte_at(start + size - 1)), (FRESH, FRESH));
        }
        assert_eq!(memory.free_bytes(), (1 << 20) - 1024);
    }

    #[test]
    fn what_is_freed_is_gone_and_can_be_had_again() {
        let memory = Memory::new(1000);
        let address = memory.allocate(600).unwrap();
        assert_eq!(memory.allocate(401), Err(Refusal::Full));
        assert_eq!(memory.allocate(u64::MAX), Err(Refusal::Full));
        assert_eq!(memory.allocate(0), Err(Refusal::Unfit));
        for wrong in [0, address + 1, address - 1] {
            assert_eq!(memory.free(wrong), Err(Refusal::Unfit));
        }
        assert_eq!(memory.free_host(address), Err(Refusal::Unfit));
        memory.free(address).unwrap();
        assert_eq!(memory.range_of(address), None);
        assert_eq!(memory.free(address), Err(Refusal::Unfit));
        memory.allocate(1000).unwrap();
    }

    #[test]
    fn memory_is_put_behind_addresses_piece_by_piece() {
        let piece = GRANULARITY_BYTES;
        let memory = Memory::new(4 * piece);
        let start = memory.reserve(64 * piece).unwrap();
        assert_eq!(start % piece, 0);
        assert_eq!(memory.range_of(start), None);
        let put = |at: u64, pieces: u64| -> Result<(), Refusal> {
            let handle = memory.create(pieces * piece)?;
            let mapped = memory.map(start + at * piece, pieces * piece, handle);
            memory.release(handle).unwrap();
            mapped
        };
        put(0, 1).unwrap();
        assert_eq!(memory.range_of(start), None, "it is not accessible yet");
        memory.open(start, piece).unwrap();
        assert_eq!(byte_at(start), FRESH);
        put(1, 2).unwrap();
        memory.open(start + piece, 2 * piece).unwrap();
        assert_eq!(memory.range_of(start + piece), Some((start, start + 3 * piece)));
        assert_eq!(memory.free_bytes(), piece);

        assert_eq!(put(2, 1), Err(Refusal::Unfit), "there is memory already");
        assert_eq!(put(64, 1), Err(Refusal::Unfit), "it is past the end");
        assert_eq!(put(8, 2), Err(Refusal::Full));
        assert_eq!(memory.free_bytes(), piece, "what was refused is given back");
        assert_eq!(memory.open(start + 2 * piece, 2 * piece), Err(Refusal::Unfit));
        assert_eq!(memory.unreserve(start, 64 * piece), Err(Refusal::Unfit));
        assert_eq!(memory.unmap(start, 2 * piece), Err(Refusal::Unfit), "that is half a piece");

        memory.unmap(start, piece).unwrap();
        assert_eq!(memory.range_of(start), None);
        assert_eq!(memory.range_of(start + piece), Some((start + piece, start + 3 * piece)));
        memory.unmap(start + piece, 2 * piece).unwrap();
        assert_eq!(memory.free_bytes(), 4 * piece);
        assert_eq!(memory.unreserve(start, piece), Err(Refusal::Unfit), "that is a part of it");
        memory.unreserve(start, 64 * piece).unwrap();
    }

    #[test]
    fn a_handle_keeps_memory_until_it_is_released() {
        let piece = GRANULARITY_BYTES;
        let memory = Memory::new(2 * piece);
        let start = memory.reserve(2 * piece).unwrap();
        let handle = memory.create(piece).unwrap();
        assert_eq!(memory.create(piece + 1), Err(Refusal::Unfit), "no whole pieces");
        memory.map(start, piece, handle).unwrap();
        let elsewhere = memory.map(start + piece, piece, handle);
        assert_eq!(elsewhere, Err(Refusal::Unfit), "it has an address");
        memory.unmap(start, piece).unwrap();
        assert_eq!(memory.free_bytes(), piece);
        memory.release(handle).unwrap();
        assert_eq!(memory.release(handle), Err(Refusal::Unfit));
        assert_eq!(memory.free_bytes(), 2 * piece);
    }

    #[test]
    fn threads_share_one_budget() {
        let memory = Memory::new(64 << 12);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let held: Vec<u64> =
                            (0..16).map(|_| memory.allocate(1 << 12).unwrap()).collect();
                        for address in held {
                            assert_eq!(memory.range_of(address), Some((address, address + 4096)));
                            memory.free(address).unwrap();
                        }
                    }
                });
            }
        });
        assert_eq!(memory.free_bytes(), memory.total_bytes());
    }
}
