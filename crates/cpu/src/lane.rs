//! What the executables of one partition run on: workers with their arena, and others for interruptions.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use weft_device::{DeviceError, UnitSet, Urgency};

use crate::{AlignedBuffer, Isa, Pool, PoolError, Priority};

/// One batch at a time in turn, and one at a time that interrupts it. The two share cores, and never an arena.
pub(crate) struct Lane {
    in_turn: Track,
    /// Made for the first interruption.
    at_once: OnceLock<Track>,
}

/// Workers, and the arena of the one batch that they run at a time.
pub(crate) struct Track {
    pub(crate) pool: Pool,
    arena: Mutex<Arena>,
}

impl Lane {
    pub(crate) fn new(units: &UnitSet, isa: Isa, priority: Priority) -> Result<Self, DeviceError> {
        let pool = Pool::with_priority(units.as_slice(), isa, priority);
        Ok(Self { in_turn: Track::new(pool)?, at_once: OnceLock::new() })
    }

    /// Where a batch of this urgency runs.
    pub(crate) fn track(&self, urgency: Urgency) -> Result<&Track, DeviceError> {
        match (urgency, self.at_once.get()) {
            (Urgency::InTurn, _) => Ok(&self.in_turn),
            (Urgency::AtOnce, Some(track)) => Ok(track),
            (Urgency::AtOnce, None) => {
                let track = Track::new(self.in_turn.pool.interrupter())?;
                Ok(self.at_once.get_or_init(|| track))
            }
        }
    }
}

impl Track {
    fn new(pool: Result<Pool, PoolError>) -> Result<Self, DeviceError> {
        let pool = pool.map_err(|error| DeviceError::Failed(error.to_string()))?;
        Ok(Self { pool, arena: Mutex::default() })
    }

    /// Waits until no other batch has the arena.
    pub(crate) fn arena(&self) -> MutexGuard<'_, Arena> {
        self.arena.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory for activations, grown to the largest plan that has run.
pub(crate) struct Arena(AlignedBuffer);

impl Default for Arena {
    fn default() -> Self {
        Self(AlignedBuffer::empty())
    }
}

impl Arena {
    /// The first `elements` values, whose content is whatever was left there.
    pub(crate) fn of_at_least(&mut self, elements: usize) -> Result<&mut [f32], DeviceError> {
        if self.0.len() < elements {
            self.0 = AlignedBuffer::empty();
            self.0 = AlignedBuffer::zeroed(elements)
                .map_err(|error| DeviceError::Failed(error.to_string()))?;
        }
        Ok(&mut self.0[..elements])
    }
}
