//! Partitions that never change.

use crate::identity::ModelId;
use crate::latency::PredictionError;
use crate::policy::{Action, Event, Policy};
use crate::served::ServedDevice;
use crate::serving::{Serving, ServingPartition};
use crate::time::Time;

/// A policy that serves on a set of partitions that is made once.
pub struct FixedServing {
    name: &'static str,
    serving: Serving,
    /// Those that are not prepared yet.
    partitions: Vec<ServingPartition>,
    prepared: Vec<ServingPartition>,
}

impl FixedServing {
    /// Partitions of these sizes, with the models of each.
    pub fn new(
        name: &'static str,
        device: ServedDevice,
        partitions: Vec<(u32, Vec<(ModelId, u32)>)>,
    ) -> Self {
        Self {
            name,
            serving: Serving::new(device),
            partitions: ServingPartition::side_by_side(partitions),
            prepared: Vec::new(),
        }
    }
}

impl Policy for FixedServing {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prediction_error(&self) -> Option<PredictionError> {
        self.serving.latency().error_overall()
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        match event {
            Event::Started => {
                actions.extend(self.partitions.iter().map(ServingPartition::preparation));
            }
            Event::Prepared(id) => {
                let ready = self.partitions.extract_if(.., |partition| partition.id == id);
                self.prepared.extend(ready);
                self.serving.switch(&self.prepared, now, actions);
            }
            Event::Arrived(request) => {
                // The refusal is among the actions.
                let _ = self.serving.arrive(request, now, actions);
            }
            Event::Finished(launch) => self.serving.finish(launch, now, actions),
            Event::Unprepared(_) | Event::Planned(_) | Event::Woken => {}
        }
    }
}
