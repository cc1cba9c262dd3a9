//! Partitions that never change.

use crate::identity::ModelId;
use crate::latency::PredictionError;
use crate::policy::{Action, Event, PartitionId};
use crate::served::ServedDevice;
use crate::serving::{Serving, ServingPartition};
use crate::time::Time;
use crate::unit_mask::UnitMask;

/// A set of partitions that is made once.
pub struct FixedServing {
    serving: Serving,
    /// Those that are not prepared yet.
    partitions: Vec<ServingPartition>,
    prepared: Vec<ServingPartition>,
}

impl FixedServing {
    /// Partitions of these sizes, with the models of each.
    pub fn new(device: ServedDevice, partitions: &[(u32, Vec<(ModelId, u32)>)]) -> Self {
        let mut first = 0;
        let partitions = partitions.iter().enumerate().map(|(index, (count, models))| {
            let units = UnitMask::range(first, *count);
            first += count;
            let id = PartitionId(index as u32);
            ServingPartition { id, units, models: models.clone() }
        });
        Self {
            partitions: partitions.collect(),
            serving: Serving::new(device),
            prepared: Vec::new(),
        }
    }

    /// How far recent predictions were off.
    pub fn prediction_error(&self) -> Option<PredictionError> {
        self.serving.latency().error_overall()
    }

    /// Reacts as a policy does.
    pub fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
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
