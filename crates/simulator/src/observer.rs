//! Looking on while a policy runs.

use weft_scheduler::{ModelId, PartitionId, Refusal, Request, RequestId, Time, UnitMask};

/// A launch that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed<'a> {
    /// Where it ran.
    pub partition: PartitionId,
    /// The partition's units.
    pub units: UnitMask,
    /// The model of its first request.
    pub model: ModelId,
    /// How many models its requests are of: several where these are members of one group.
    pub tenants: u32,
    /// Whose requests; as many as the batch is large.
    pub requests: &'a [RequestId],
    /// When it began.
    pub start: Time,
    /// When it ended.
    pub end: Time,
}

/// Is told what happens in a run, in the order of time. What it does not care for costs nothing.
#[allow(unused_variables)]
pub trait Observer {
    /// A request came.
    fn arrived(&mut self, request: &Request) {}

    /// A request was declined at the door.
    fn refused(&mut self, request: &Request, why: Refusal, now: Time) {}

    /// A request was dropped that had been accepted.
    fn shed(&mut self, request: &Request, now: Time) {}

    /// A member of a group is served apart from the others until an instant.
    fn evicted(&mut self, model: ModelId, now: Time, until: Time) {}

    /// A launch has ended, and its requests are answered.
    fn executed(&mut self, executed: Executed<'_>) {}

    /// Making models ready on a partition has begun, and will be done at `until`.
    fn preparing(&mut self, partition: PartitionId, units: UnitMask, now: Time, until: Time) {}

    /// A partition has taken its units.
    fn activated(&mut self, partition: PartitionId, units: UnitMask, now: Time) {}

    /// A partition has given its units back.
    fn deactivated(&mut self, partition: PartitionId, units: UnitMask, now: Time) {}
}

/// Nobody looks on.
impl Observer for () {}
