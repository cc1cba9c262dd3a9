//! What drives decisions and what they are: events in, actions out. A policy is a value that turns the one into the other.

use crate::identity::ModelId;
use crate::request::{Request, RequestId};
use crate::time::{Span, Time};

/// A partition's number, never used twice in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionId(pub u32);

/// A launch's number, never used twice in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaunchId(pub u64);

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The run begins; comes first and once.
    Started,
    /// A request came.
    Arrived(Request),
    /// A launch has ended.
    Finished(LaunchId),
    /// A partition that was asked for can be used from now on.
    Prepared(PartitionId),
    /// A time that was asked for has come.
    Woken,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make a partition of so many units, with these models ready on it. It may be used once it is prepared.
    Prepare {
        /// The new partition.
        partition: PartitionId,
        /// How many units it has.
        units: u32,
        /// The models that are made ready.
        models: Vec<ModelId>,
    },
    /// Give a partition's units back; nothing runs on it.
    Retire(PartitionId),
    /// Run requests of one model together on a partition that runs nothing.
    Launch {
        /// The new launch.
        launch: LaunchId,
        /// Where it runs.
        partition: PartitionId,
        /// What runs.
        model: ModelId,
        /// Whose requests; at least one.
        requests: Vec<RequestId>,
        /// How long it is expected to take.
        expected: Span,
    },
    /// Decline a request at the door.
    Refuse {
        /// The request.
        request: RequestId,
        /// Why.
        why: Refusal,
    },
    /// Drop a request that was accepted: its deadline can no longer be met.
    Shed(RequestId),
    /// Ask to be woken.
    WakeAt(Time),
}

/// Why a request is declined at the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its answer is predicted to come too late.
    TooLate {
        /// The latency that was predicted.
        predicted: Span,
    },
    /// The queue is full.
    QueueFull,
    /// Nothing serves the model.
    NotServed,
}

/// A way to decide. It reads no clock: `now` never runs backwards from one call to the next.
pub trait Policy {
    /// The name to select and report it by.
    fn name(&self) -> &'static str;

    /// Reacts to what happened by appending what is to be done.
    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>);
}
