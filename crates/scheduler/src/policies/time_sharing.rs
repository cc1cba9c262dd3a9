//! Time sharing: all units are one partition, and models take turns on it, batched, by deadline.

use std::sync::Arc;

use crate::identity::ModelId;
use crate::lane::{BatchLatency, Lane};
use crate::policy::{Action, Event, LaunchId, PartitionId, Policy};
use crate::profile::Profile;
use crate::time::{Span, Time};

/// The most requests that may wait.
const QUEUE_LIMIT: usize = 100_000;

/// The only partition.
const PARTITION: PartitionId = PartitionId(0);

/// One model at a time on the whole device.
pub struct TimeSharing {
    latencies: Latencies,
    lane: Lane,
    next_launch: u64,
    is_prepared: bool,
    is_busy: bool,
}

/// The profiles at the number of units that there are.
struct Latencies {
    units: u32,
    profiles: Vec<Arc<Profile>>,
}

impl BatchLatency for Latencies {
    fn of(&self, model: ModelId, batch: u32) -> Span {
        self.profiles[model.index()].latency(batch, self.units)
    }

    fn largest_batch(&self, model: ModelId) -> u32 {
        self.profiles[model.index()].batches().last().copied().unwrap_or(1)
    }
}

impl TimeSharing {
    /// For models with these profiles on a device of so many units.
    pub fn new(profiles: Vec<Arc<Profile>>, units: u32) -> Self {
        Self {
            lane: Lane::new(profiles.len(), QUEUE_LIMIT),
            latencies: Latencies { units, profiles },
            next_launch: 0,
            is_prepared: false,
            is_busy: false,
        }
    }

    fn launch(&mut self, now: Time, actions: &mut Vec<Action>) {
        if self.is_busy || !self.is_prepared {
            return;
        }
        let batch =
            self.lane.next(now, &self.latencies, |late| actions.push(Action::Shed(late.id)));
        let Some(batch) = batch else { return };
        self.is_busy = true;
        let launch = LaunchId(self.next_launch);
        self.next_launch += 1;
        actions.push(Action::Launch {
            launch,
            partition: PARTITION,
            model: batch.model,
            requests: batch.requests.iter().map(|request| request.id).collect(),
            expected: batch.expected,
        });
    }
}

impl Policy for TimeSharing {
    fn name(&self) -> &'static str {
        "time-sharing"
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        match event {
            Event::Started => actions.push(Action::Prepare {
                partition: PARTITION,
                units: self.latencies.units,
                models: (0..self.latencies.profiles.len() as u32).map(ModelId).collect(),
            }),
            Event::Prepared(_) => self.is_prepared = true,
            Event::Arrived(request) => {
                if let Err(why) = self.lane.admit(request, now, &self.latencies) {
                    actions.push(Action::Refuse { request: request.id, why });
                }
            }
            Event::Finished(_) => self.is_busy = false,
            Event::Woken => {}
        }
        self.launch(now, actions);
    }
}
