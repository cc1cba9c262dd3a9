//! What a policy must not do.

use weft_scheduler::{LaunchId, MixId, ModelId, PartitionId, RequestId};

/// A policy that did what it must not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Violation {
    NoUnits(PartitionId),
    UnitsBeyondDevice(PartitionId),
    UnitsOversubscribed(PartitionId),
    UnitsChanged(PartitionId),
    PartitionNotActive(PartitionId),
    PartitionActive(PartitionId),
    ModelNotReady {
        partition: PartitionId,
        model: ModelId,
    },
    PartitionBusy(PartitionId),
    UnknownPartition(PartitionId),
    UnknownRequest(RequestId),
    EmptyLaunch(LaunchId),
    /// Rows of the call that this is one of were refused, and others were not.
    CallDivided(RequestId),
    WrongModel {
        request: RequestId,
        launched: ModelId,
    },
    UnknownMix {
        launch: LaunchId,
        mix: MixId,
    },
    NotAllOfMix {
        launch: LaunchId,
        mix: MixId,
    },
    RequestsLost(usize),
}
