//! One partition that serves: its lane, its latencies and what runs on it.

use crate::identity::{MixId, ModelId};
use crate::lane::{Lane, LaneModel};
use crate::latency::{MemoryShare, Prediction};
use crate::policy::LaunchId;
use crate::request::Request;
use crate::served::{ServedDevice, ServedModel};
use crate::serving::ServingPartition;
use crate::serving::latencies::{Latencies, LatencyTables};
use crate::time::{Span, Time};

/// The most requests that may wait for one partition.
const QUEUE_LIMIT: usize = 100_000;

/// Where a partition is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It takes requests, and waits for its units.
    Waiting,
    /// It takes requests and runs them.
    Serving,
    /// It takes no more, and ends what it runs.
    Leaving,
}

/// What runs on a partition.
pub(super) struct Running {
    pub(super) launch: LaunchId,
    /// That of its first request.
    pub(super) model: ModelId,
    /// The mix that its requests are of.
    pub(super) mix: Option<MixId>,
    pub(super) requests: Vec<Request>,
    pub(super) started: Time,
    pub(super) memory: MemoryShare,
    pub(super) prediction: Prediction,
    /// How long it was paused.
    pub(super) paused: Span,
    /// How it goes says nothing of others: something else used its units just before it began, or only a part of it runs.
    pub(super) teaches_nothing: bool,
}

pub(super) struct Served {
    pub(super) partition: ServingPartition,
    pub(super) latencies: Latencies,
    pub(super) lane: Lane,
    pub(super) state: State,
    /// Whether it has its units.
    pub(super) is_active: bool,
    pub(super) running: Option<Running>,
    /// What has been interrupted by what runs.
    pub(super) paused: Option<Running>,
}

impl Served {
    pub(super) fn new(
        device: &ServedDevice,
        tables: &LatencyTables,
        partition: &ServingPartition,
    ) -> Self {
        Self {
            partition: partition.clone(),
            latencies: latencies(tables, partition),
            lane: lane(device, partition),
            state: State::Waiting,
            is_active: false,
            running: None,
            paused: None,
        }
    }

    /// Whether the same models are served at the same batches.
    pub(super) fn serves_as(&self, partition: &ServingPartition) -> bool {
        self.partition == *partition
    }

    /// Serves other models, or the same at other batches, after what runs; the lane is empty where models change.
    pub(super) fn reconfigure(
        &mut self,
        device: &ServedDevice,
        tables: &LatencyTables,
        partition: &ServingPartition,
    ) {
        self.state = if self.is_active { State::Serving } else { State::Waiting };
        if self.serves_as(partition) {
            return;
        }
        let (free_at, paused) = (self.lane.free_at(Time::START), self.lane.take_paused());
        self.partition = partition.clone();
        self.latencies = latencies(tables, partition);
        self.lane = lane(device, partition);
        self.lane.set_busy_until(free_at);
        if let Some(paused) = paused {
            self.lane.put_paused(paused);
        }
    }

    /// All that runs or is paused.
    pub(super) fn launches(&self) -> impl Iterator<Item = &Running> {
        self.running.iter().chain(&self.paused)
    }

    pub(super) fn launches_mut(&mut self) -> impl Iterator<Item = &mut Running> {
        self.running.iter_mut().chain(&mut self.paused)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.launches().next().is_none()
    }

    /// What runs is paused, where the lane has said so.
    pub(super) fn pause_if_interrupted(&mut self) {
        if self.paused.is_none() && self.lane.has_paused() {
            self.paused = self.running.take();
        }
    }

    /// Lets what is paused go on, if it is next; says whether it does.
    pub(super) fn resume(&mut self, now: Time) -> bool {
        let goes_on = self.lane.resume(now);
        if goes_on {
            self.running = self.paused.take();
        }
        goes_on
    }

    /// A launch begins only now; false where it is not one of its launches.
    pub(super) fn begin(&mut self, launch: LaunchId, now: Time) -> bool {
        if let Some(running) = self.running.as_mut().filter(|it| it.launch == launch) {
            self.lane.delay(now.since(running.started));
            (running.started, running.teaches_nothing) = (now, true);
            return true;
        }
        let Some(paused) = self.paused.as_mut().filter(|it| it.launch == launch) else {
            return false;
        };
        // It was interrupted before it began: all of it is still to be done.
        let interrupted_at = self.running.as_ref().map_or(now, |it| it.started);
        self.lane.delay_paused(interrupted_at.since(paused.started));
        (paused.started, paused.teaches_nothing) = (now, true);
        true
    }

    pub(super) fn leave(&mut self) {
        self.state = State::Leaving;
    }
}

fn lane(device: &ServedDevice, partition: &ServingPartition) -> Lane {
    let model = |&(model, _): &(ModelId, u32)| {
        let served = &device.models[model.index()];
        let slo = served.slo.map(|slo| slo.latency);
        let &ServedModel { weight, priority, group, .. } = served;
        LaneModel { model, slo, weight, priority, group }
    };
    let lane = Lane::new(partition.models.iter().map(model), QUEUE_LIMIT);
    lane.with_interruptions(device.can_interrupt)
}

fn latencies(tables: &LatencyTables, partition: &ServingPartition) -> Latencies {
    tables.latencies(partition.units.len(), &partition.models)
}
