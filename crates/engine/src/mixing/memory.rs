//! Memory of the device that mixes take, and how much of it they may take.

use std::sync::{Arc, Mutex};

use crate::call::lock;

/// What all mixes take together, and may take.
pub(crate) struct MixMemory(Mutex<Bytes>);

struct Bytes {
    taken: u64,
    limit: u64,
}

/// There is no room for a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom {
    /// What it takes.
    pub(crate) memory_bytes: u64,
    /// What there is for it.
    pub(crate) free_bytes: u64,
}

impl MixMemory {
    pub(crate) fn new(limit_bytes: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Bytes { taken: 0, limit: limit_bytes })))
    }

    pub(crate) fn taken_bytes(&self) -> u64 {
        lock(&self.0).taken
    }

    /// Mixes may take so much from now on. Those that take more by then are others' to let go of.
    pub(crate) fn limit_to(&self, limit_bytes: u64) {
        lock(&self.0).limit = limit_bytes;
    }

    /// The share of one mix, which takes nothing yet.
    pub(crate) fn share(self: &Arc<Self>) -> MixShare {
        MixShare { memory: self.clone(), bytes: 0 }
    }
}

/// What one mix takes, until it is let go of.
pub(crate) struct MixShare {
    memory: Arc<MixMemory>,
    bytes: u64,
}

impl MixShare {
    /// The mix takes so much from now on; an error where that is too much.
    pub(crate) fn set(&mut self, memory_bytes: u64) -> Result<(), NoRoom> {
        let mut bytes = lock(&self.memory.0);
        bytes.taken = bytes.taken - self.bytes + memory_bytes;
        self.bytes = memory_bytes;
        drop(bytes);
        self.fits()
    }

    /// An error where mixes take more than they may by now.
    pub(crate) fn fits(&self) -> Result<(), NoRoom> {
        let bytes = lock(&self.memory.0);
        if bytes.taken <= bytes.limit {
            return Ok(());
        }
        let free_bytes = bytes.limit.saturating_sub(bytes.taken - self.bytes);
        Err(NoRoom { memory_bytes: self.bytes, free_bytes })
    }
}

impl Drop for MixShare {
    fn drop(&mut self) {
        lock(&self.memory.0).taken -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_have_room_up_to_the_limit_and_give_it_back() {
        let memory = MixMemory::new(100);
        let (mut first, mut second) = (memory.share(), memory.share());
        assert_eq!((first.set(60), second.set(40)), (Ok(()), Ok(())));
        let no_room = |memory_bytes, free_bytes| Err(NoRoom { memory_bytes, free_bytes });
        assert_eq!(second.set(41), no_room(41, 40), "it grows");
        assert_eq!(memory.taken_bytes(), 101);
        drop(second);
        assert_eq!((first.set(100), memory.taken_bytes()), (Ok(()), 100));
        memory.limit_to(99);
        assert_eq!(first.fits(), no_room(100, 99));
        memory.limit_to(100);
        assert_eq!(first.fits(), Ok(()));
        drop(first);
        assert_eq!(memory.taken_bytes(), 0);
    }
}
