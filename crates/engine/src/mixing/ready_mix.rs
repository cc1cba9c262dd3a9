//! A mix that is ready to be launched.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use weft_device::DeviceError;
use weft_ir::Value;
use weft_scheduler::MixId;

use super::memory::{MixShare, NoRoom};
use crate::call::lock;
use crate::model::ModelKey;
use crate::regulation::RegulatedMix;
use crate::service::Generation;

/// A mix with its schedule, and whose models they are.
pub(crate) struct ReadyMix {
    /// What the service that it was regulated for knows it by.
    pub(crate) id: (Generation, MixId),
    /// In the order of the mix, with the size of each one's batch.
    pub(crate) models: Vec<(ModelKey, u32)>,
    /// With what it takes; none once it was let go of.
    mix: Mutex<Option<(RegulatedMix, MixShare)>>,
    is_gone: AtomicBool,
}

impl ReadyMix {
    pub(crate) fn new(
        id: (Generation, MixId),
        models: Vec<(ModelKey, u32)>,
        mix: RegulatedMix,
        share: MixShare,
    ) -> Self {
        Self { id, models, mix: Mutex::new(Some((mix, share))), is_gone: AtomicBool::new(false) }
    }

    /// Runs all models on the inputs of their batches.
    pub(crate) fn run(&self, inputs: &[Vec<Value>]) -> Result<Vec<Vec<Value>>, DeviceError> {
        // What a run that panicked has left is written anew by each.
        match &mut *lock(&self.mix) {
            Some((mix, _)) => mix.run(inputs),
            None => Err(DeviceError::Failed("the mix was let go of".into())),
        }
    }

    /// Lets go of it, after a run that is under way, where mixes take more than they may; says so. It cannot be run from then
    /// on.
    pub(crate) fn let_go_if_too_large(&self) -> Option<NoRoom> {
        let mut mix = lock(&self.mix);
        let no_room = mix.as_ref().and_then(|(_, share)| share.fits().err())?;
        self.is_gone.store(true, Ordering::Relaxed);
        *mix = None;
        Some(no_room)
    }

    /// Whether it was let go of.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }
}
