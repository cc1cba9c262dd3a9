//! The kernels that a device was told to prefer.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use weft_device::KernelChoices;

/// What was found to be fastest, shared by a device and its partitions; nothing at first.
#[derive(Clone, Default)]
pub(crate) struct Choices(Arc<RwLock<Option<Arc<dyn KernelChoices>>>>);

impl Choices {
    /// From now on these are taken.
    pub(crate) fn set(&self, choices: Arc<dyn KernelChoices>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(choices);
    }

    /// Those that are taken now.
    pub(crate) fn current(&self) -> Option<Arc<dyn KernelChoices>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Choices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_choices = self.current().is_some();
        formatter.debug_tuple("Choices").field(&has_choices).finish()
    }
}
