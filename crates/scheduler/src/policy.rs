//! What drives decisions and what they are: events in, actions out. A policy is a value that turns the one into the other.

use crate::identity::{MixId, ModelId};
use crate::latency::PredictionError;
use crate::layout::{LayoutFound, LayoutTask};
use crate::learned::Learned;
use crate::request::{Request, RequestId};
use crate::time::{Span, Time};
use crate::unit_mask::UnitMask;

/// A partition's number, never used twice in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionId(pub u32);

/// A launch's number, never used twice in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaunchId(pub u64);

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The run begins; comes first and once.
    Started,
    /// A request came.
    Arrived(Request),
    /// Requests of one model came together, such as the rows of one call: none is launched before all have found their
    /// place, so that they can share a batch, and where one is refused at the door all are.
    ArrivedTogether(Vec<Request>),
    /// A launch begins only now, after something else has used its units. There is nothing to be done about it.
    Begun(LaunchId),
    /// Only some of a launch's requests are run, or none, since nobody waits for the others any more; or they are no mix, though they
    /// were launched as one: how long it takes says nothing of others. There is nothing to be done about it.
    Thinned(LaunchId),
    /// A launch has ended.
    Finished(LaunchId),
    /// All models that a partition was asked to be prepared for can run on it from now on. Where it was asked more than once,
    /// the answers come in that order.
    Prepared(PartitionId),
    /// The models that a partition was asked to be prepared for could not all be made ready: none of them can be used there.
    /// What was ready before still is. The answer to the same question as [`Event::Prepared`].
    Unprepared(PartitionId),
    /// A task to plan has been solved.
    Planned(Box<LayoutFound>),
    /// A task to plan could not be solved: there is nothing better than what there is.
    Unplanned,
    /// A mix was regulated, and can be launched from now on where it gains something; or one that could be launched is let go of.
    Regulated {
        /// The mix.
        mix: MixId,
        /// What it takes, as a share of what its batches take one after another, or why it is not to be launched.
        share: Result<f64, NoMix>,
    },
    /// A time that was asked for has come.
    Woken,
}

/// Why a mix cannot be launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoMix {
    /// It is no faster than its batches one after another, or there was no way to tell.
    GainsNothing,
    /// There is no room for it in the device's memory, or no more.
    NoRoom,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make models ready on a partition, besides those that are ready there. What runs meanwhile, there or on other
    /// partitions of the same units, is not disturbed.
    Prepare {
        /// A new partition, or one that was prepared before.
        partition: PartitionId,
        /// Its units: always the same for one partition.
        units: UnitMask,
        /// The models that are made ready.
        models: Vec<ModelId>,
    },
    /// From now on a partition has its units for itself: no other active partition has any of them.
    Activate(PartitionId),
    /// A partition gives its units back; nothing runs on it. It stays prepared.
    Deactivate(PartitionId),
    /// A partition that is not active is needed no more.
    Discard(PartitionId),
    /// Run requests of one model together, or of members of one group, or all of a mix, on an active partition that runs nothing
    /// and has these models ready. Where the device [can interrupt](crate::ServedDevice::can_interrupt), the partition may run one other launch, which pauses until this
    /// one has ended.
    Launch {
        /// The new launch.
        launch: LaunchId,
        /// Where it runs.
        partition: PartitionId,
        /// The model of the first request; that of each other is the same, or another member of its group, or of the mix.
        model: ModelId,
        /// The mix that they are all of, which was [regulated](Event::Regulated) for the partition's units.
        mix: Option<MixId>,
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
    /// Know that a request is served without a promise: it is predicted to be late though nothing is before it, and that is put to the
    /// test. Nothing is to be done about it.
    Try(RequestId),
    /// Know that a member of a group is served apart from the others until an instant, since it holds them up. Nothing is to
    /// be done about it.
    Evicted {
        /// The member.
        model: ModelId,
        /// When it is let back.
        until: Time,
    },
    /// Solve a task that takes longer than decisions may, beside what is served.
    Plan(Box<LayoutTask>),
    /// Find how batches of different models share some units so that all end soonest, in moments in which nothing is served, and
    /// make that ready. The answer is [`Event::Regulated`].
    Regulate {
        /// A new mix.
        mix: MixId,
        /// What it will run on: any partition of just these.
        units: UnitMask,
        /// The models, each once, and the size of each one's batch.
        models: Vec<(ModelId, u32)>,
        /// Whether requests that come meanwhile may be late for it, since many are lost without it; else none is.
        may_hold_up: bool,
    },
    /// A mix is needed no more, whether it is ready or still being regulated.
    Forget(MixId),
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
    /// Its model has its share of an overloaded partition, and what time is left is for others.
    OverShare {
        /// The latency that was predicted.
        predicted: Span,
    },
    /// The queue is full.
    QueueFull,
    /// Nothing serves the model.
    NotServed,
}

/// A way to decide. It reads no clock: `now` never runs backwards from one call to the next.
pub trait Policy: Send {
    /// The name to select and report it by.
    fn name(&self) -> &'static str;

    /// How far its recent predictions of latencies were off; `None` where it makes none, or none has come true yet.
    fn prediction_error(&self) -> Option<PredictionError> {
        None
    }

    /// How many requests per second have come for a model of late; `None` where it does not follow that.
    fn rate_per_s(&self, model: ModelId, now: Time) -> Option<f64> {
        let _ = (model, now);
        None
    }

    /// Whether a member of a group is served apart from the others at present.
    fn is_evicted(&self, model: ModelId, now: Time) -> bool {
        let _ = (model, now);
        false
    }

    /// What it has learned so far.
    fn learned(&self) -> Learned {
        Learned::default()
    }

    /// Told before it starts what the policy has learned in whose place it comes, by its own models: so it changes the layout
    /// only where that is worth it, and promises as well as the other did.
    fn start_from(&mut self, learned: Learned) {
        let _ = learned;
    }

    /// Reacts to what happened by appending what is to be done.
    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>);
}
