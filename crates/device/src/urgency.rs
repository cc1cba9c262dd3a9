//! When a run begins on a partition where another is under way.

use weft_ir::Value;

use crate::{DeviceError, Executable};

/// When a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// After what runs.
    InTurn,
    /// Now, where the partition can be interrupted: what runs pauses meanwhile.
    AtOnce,
}

impl Urgency {
    pub(crate) fn run(
        self,
        executable: &dyn Executable,
        inputs: &[Value],
    ) -> Result<Vec<Value>, DeviceError> {
        match self {
            Self::InTurn => executable.run(inputs),
            Self::AtOnce => executable.interrupt(inputs),
        }
    }
}
