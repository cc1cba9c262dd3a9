//! What is ready on a partition: a model by itself, and its seat in a group.

use std::sync::Arc;

use weft_device::{Buckets, DeviceError, Group, GroupMember, LoadedModel};

/// A model that is ready on a partition.
#[derive(Clone)]
pub(crate) struct ReadyModel {
    /// For running it by itself, and for cutting and joining entries.
    pub(crate) buckets: Arc<Buckets>,
    /// Where it is a member of a group.
    pub(crate) seat: Option<Arc<Seat>>,
}

/// A model's place in a group. The model leaves when nobody uses the seat any more, and the group ends with its last seat.
pub(crate) struct Seat {
    pub(crate) group: Arc<dyn Group>,
    pub(crate) member: GroupMember,
}

impl Seat {
    /// A seat in a group that there is.
    pub(crate) fn in_group(
        group: Arc<dyn Group>,
        model: &dyn LoadedModel,
    ) -> Result<Self, DeviceError> {
        let member = group.join(model)?;
        Ok(Self { group, member })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // It was a member for as long as there was a seat.
        let _ = self.group.leave(self.member);
    }
}
