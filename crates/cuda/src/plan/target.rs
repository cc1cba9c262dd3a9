//! What an execution plan is made for.

use weft_device::DeviceError;
use weft_ir::{OptimizedGraph, ValueId};

use super::chooser::Chooser;
use super::steps::DeviceValue;
use crate::choosing::{Choosing, LibraryAccess};
use crate::weights::WeightStore;
use crate::{Chip, Precision};

/// The model, and the share of the chip that it will run on.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    /// The model's name, for messages.
    pub(crate) model: &'a str,
    pub(crate) weights: &'a WeightStore,
    pub(crate) chip: Chip,
    pub(crate) precision: Precision,
    /// What decides among the ways to compute a node.
    pub(crate) chooser: &'a dyn Chooser,
    /// The libraries whose calls are candidates too.
    pub(crate) libraries: LibraryAccess<'a>,
    /// Which candidates there are to decide among.
    pub(crate) choosing: Choosing<'a>,
}

impl Target<'_> {
    /// A value as the device holds it; `None` where it stays on the host.
    pub(crate) fn device_value(&self, graph: &OptimizedGraph, id: ValueId) -> Option<DeviceValue> {
        let fact = graph.fact(id);
        let data_type = fact.data_type?;
        let storage = self.precision.storage_of(data_type)?;
        Some(DeviceValue { data_type, shape: fact.shape()?, storage })
    }

    /// An error that happened while a node was planned.
    pub(crate) fn in_node(&self, node: &str, error: DeviceError) -> DeviceError {
        error.at(self.model, Some(node))
    }
}
