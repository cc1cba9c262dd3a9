//! Partitions that serve: each with its lane, and requests routed to the one that answers first.

use std::sync::Arc;

use crate::identity::ModelId;
use crate::lane::{BatchLatency, Lane};
use crate::policy::{Action, Event, LaunchId, PartitionId, Refusal};
use crate::profile::Profile;
use crate::request::Request;
use crate::time::{Span, Time};

/// The most requests that may wait for one partition.
const QUEUE_LIMIT: usize = 100_000;

/// A partition to be made: its size, and the models that it serves, each up to a batch size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingPartition {
    /// How many units it has.
    pub units: u32,
    /// The models, and the largest batch of each.
    pub models: Vec<(ModelId, u32)>,
}

/// How long every batch of every model takes on one partition: looked up many times for each request.
struct Latencies {
    units: u32,
    /// By model, then by batch size less one; empty for models that are not served here.
    table: Vec<Vec<Span>>,
}

impl Latencies {
    fn new(profiles: &[Arc<Profile>], partition: &ServingPartition) -> Self {
        let mut table = vec![Vec::new(); profiles.len()];
        for &(model, largest) in &partition.models {
            let profile = &profiles[model.index()];
            let latency = |batch| profile.latency(batch, partition.units);
            table[model.index()] = (1..=largest.max(1)).map(latency).collect();
        }
        Self { units: partition.units, table }
    }

    fn models(&self) -> impl Iterator<Item = ModelId> + '_ {
        let served = (0..self.table.len()).filter(|&model| !self.table[model].is_empty());
        served.map(|model| ModelId(model as u32))
    }
}

impl BatchLatency for Latencies {
    fn of(&self, model: ModelId, batch: u32) -> Span {
        self.table[model.index()][batch as usize - 1]
    }

    fn largest_batch(&self, model: ModelId) -> u32 {
        self.table[model.index()].len() as u32
    }
}

struct Served {
    id: PartitionId,
    latencies: Latencies,
    lane: Lane,
    is_prepared: bool,
    running: Option<LaunchId>,
}

/// A fixed set of partitions and the requests that wait for them.
pub struct Serving {
    partitions: Vec<Served>,
    /// By model: the partitions that serve it.
    routes: Vec<Vec<usize>>,
    next_launch: u64,
}

impl Serving {
    /// Partitions for models with these profiles.
    pub fn new(profiles: &[Arc<Profile>], partitions: &[ServingPartition]) -> Self {
        let mut routes = vec![Vec::new(); profiles.len()];
        let mut served = Vec::with_capacity(partitions.len());
        for (index, partition) in partitions.iter().enumerate() {
            let latencies = Latencies::new(profiles, partition);
            latencies.models().for_each(|model| routes[model.index()].push(index));
            served.push(Served {
                id: PartitionId(index as u32),
                lane: Lane::new(latencies.models(), QUEUE_LIMIT),
                latencies,
                is_prepared: false,
                running: None,
            });
        }
        Self { partitions: served, routes, next_launch: 0 }
    }

    /// Reacts as a policy does whose partitions never change.
    pub fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        match event {
            Event::Started => {
                for partition in &self.partitions {
                    actions.push(Action::Prepare {
                        partition: partition.id,
                        units: partition.latencies.units,
                        models: partition.latencies.models().collect(),
                    });
                }
            }
            Event::Prepared(id) => {
                if let Some(index) = self.partitions.iter().position(|other| other.id == id) {
                    self.partitions[index].is_prepared = true;
                    self.launch(index, now, actions);
                }
            }
            Event::Arrived(request) => match self.route(request, now) {
                Ok(index) => self.launch(index, now, actions),
                Err(why) => actions.push(Action::Refuse { request: request.id, why }),
            },
            Event::Finished(launch) => {
                let is_its = |other: &Served| other.running == Some(launch);
                if let Some(index) = self.partitions.iter().position(is_its) {
                    self.partitions[index].running = None;
                    self.launch(index, now, actions);
                }
            }
            Event::Woken => {}
        }
    }

    /// Puts a request into the lane that is predicted to answer it first; where that is too late, it is too late
    /// everywhere.
    fn route(&mut self, request: Request, now: Time) -> Result<usize, Refusal> {
        let finish = |&index: &usize| {
            let partition = &self.partitions[index];
            (partition.lane.predicted_finish(&request, now, &partition.latencies), index)
        };
        let best = self.routes[request.model.index()].iter().map(finish).min();
        let Some((finish, index)) = best else { return Err(Refusal::NotServed) };
        self.partitions[index].lane.admit(request, finish)?;
        Ok(index)
    }

    fn launch(&mut self, index: usize, now: Time, actions: &mut Vec<Action>) {
        let partition = &mut self.partitions[index];
        if !partition.is_prepared || partition.running.is_some() {
            return;
        }
        let shed = |late: Request| actions.push(Action::Shed(late.id));
        let Some(batch) = partition.lane.next(now, &partition.latencies, shed) else { return };
        let launch = LaunchId(self.next_launch);
        self.next_launch += 1;
        partition.running = Some(launch);
        actions.push(Action::Launch {
            launch,
            partition: partition.id,
            model: batch.model,
            requests: batch.requests.iter().map(|request| request.id).collect(),
            expected: batch.expected,
        });
    }
}
