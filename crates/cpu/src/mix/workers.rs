//! The workers of a mix, one on each of its cores.

use weft_device::UnitSet;

use crate::{Isa, Pool, PoolError};

/// Workers that begin with the first run. A worker has the priority of the thread that it begins on, and who plans a mix may be
/// one that lets others go first.
pub(super) struct Workers {
    cores: UnitSet,
    isa: Isa,
    pool: Option<Pool>,
}

impl Workers {
    pub(super) fn new(cores: UnitSet, isa: Isa) -> Self {
        Self { cores, isa, pool: None }
    }

    pub(super) fn isa(&self) -> Isa {
        self.isa
    }

    /// The workers, who are there from now on.
    pub(super) fn begin(&mut self) -> Result<&Pool, PoolError> {
        let pool = match self.pool.take() {
            Some(pool) => pool,
            None => Pool::new(self.cores.as_slice(), self.isa)?,
        };
        Ok(self.pool.insert(pool))
    }
}
