//! Where outputs go: each connection, which has one request under way at a time, has a slot of its own.

use std::io;
use std::sync::Arc;

use super::region::Region;

/// Room for the outputs of as many requests as may be under way.
#[derive(Clone, Debug)]
pub(crate) struct OutputSlots {
    region: Arc<Region>,
    /// Where the first begins.
    offset_bytes: usize,
    /// From one to the next: as much as the largest outputs of any model take.
    slot_bytes: usize,
    count: usize,
}

impl OutputSlots {
    pub(super) fn new(
        region: Arc<Region>,
        offset_bytes: usize,
        slot_bytes: usize,
        count: usize,
    ) -> Self {
        Self { region, offset_bytes, slot_bytes, count }
    }

    pub(super) fn region(&self) -> &Region {
        &self.region
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Where a slot begins.
    pub(crate) fn offset_bytes(&self, slot: usize) -> usize {
        assert!(slot < self.count, "slot {slot} of {}", self.count);
        self.offset_bytes + slot * self.slot_bytes
    }

    /// What was written into a slot, from its beginning.
    pub(crate) fn read(&self, slot: usize, size_bytes: usize) -> io::Result<Vec<u8>> {
        self.region.read(self.offset_bytes(slot), size_bytes.min(self.slot_bytes))
    }
}
