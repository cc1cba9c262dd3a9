//! The models of a mix all at once, each with workers on every core, as the operating system likes.

use std::sync::OnceLock;

use weft_device::UnitSet;

use super::model::RunningModel;
use crate::{Isa, Pool, PoolError};

/// A pool over all cores for each model, and a thread for each that starts its runs.
pub(super) struct AtOnce {
    pools: Vec<Pool>,
    callers: Pool,
}

impl AtOnce {
    pub(super) fn new(models: usize, cores: &UnitSet, isa: Isa) -> Result<Self, PoolError> {
        let pools = (0..models).map(|_| Pool::new(cores.as_slice(), isa));
        Ok(Self { pools: pools.collect::<Result<_, _>>()?, callers: Pool::unpinned(models, isa)? })
    }

    /// Runs all models from beginning to end.
    pub(super) fn run(&self, models: &[Option<RunningModel<'_>>]) -> Result<(), PoolError> {
        let failure = OnceLock::new();
        self.callers.run(|caller| {
            let Some(model) = &models[caller.index()] else { return };
            if let Err(error) = self.pools[caller.index()].run(|worker| model.run_all(worker)) {
                let _ = failure.set(error);
            }
        })?;
        failure.into_inner().map_or(Ok(()), Err)
    }
}
