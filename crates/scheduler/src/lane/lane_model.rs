//! What a lane is told about each of its models.

use crate::identity::{GroupId, ModelId};
use crate::time::Span;

/// One model of a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneModel {
    /// Which.
    pub model: ModelId,
    /// How soon its requests must be answered; `None` is best effort.
    pub slo: Option<Span>,
    /// Its share under overload, in relation to that of the others of its priority.
    pub weight: f64,
    /// Under overload, models of a higher priority come first.
    pub priority: u8,
    /// The group that it is a member of, whose members on one lane share batches: they have the same latencies, largest
    /// batch, objective and priority.
    pub group: Option<GroupId>,
}
