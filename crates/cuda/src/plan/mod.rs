//! Execution plans: the launches that run one model at fixed shapes, and where its values lie.

mod build;
pub(crate) mod chains;
pub(crate) mod chooser;
pub(crate) mod entries;
pub(crate) mod host;
pub(crate) mod operands;
mod order;
pub(crate) mod place;
pub(crate) mod placement;
pub(crate) mod pooled;
mod schedule;
pub(crate) mod select;
pub(crate) mod siblings;
pub(crate) mod site;
pub(crate) mod steps;
pub(crate) mod target;
mod task;
#[cfg(test)]
pub(crate) mod tests;
mod traffic;
pub(crate) mod transfer;
mod users;

pub(crate) use build::build;
#[cfg(test)]
pub(crate) use build::build_with;

use std::sync::Arc;

use place::Place;
use steps::{DeviceValue, HostOperand, Stage};
use weft_device::ExecutionReport;
use weft_ir::{Fact, ValueId};

use crate::launch::DeviceWeights;

/// One model at fixed shapes: what runs where, in order. Nothing in it depends on an address.
#[derive(Clone, Default)]
pub(crate) struct ExecutionPlan {
    pub(crate) stages: Vec<Stage>,
    /// What the caller gives.
    pub(crate) inputs: Vec<PlannedInput>,
    /// What the caller gets.
    pub(crate) outputs: Vec<OutputSource>,
    /// The buffers that outputs are copied from, in the types that the caller gets.
    pub(crate) output_buffers: Vec<DeviceValue>,
    /// How many values the host keeps.
    pub(crate) host_slot_count: usize,
    /// How many words the launches count in.
    pub(crate) counter_count: usize,
    /// What one run moves through the GPU's memory, as estimated.
    pub(crate) dram_bytes: usize,
    pub(crate) report: ExecutionReport,
    /// The values that lie in the arena.
    pub(crate) values: Vec<PlacedValue>,
}

/// A value in the arena.
#[derive(Clone, Debug)]
pub(crate) struct PlacedValue {
    /// In the graph, for whichever shapes.
    pub(crate) id: ValueId,
    pub(crate) value: DeviceValue,
    pub(crate) offset_bytes: usize,
    /// The step that makes it, and the last that reads it.
    pub(crate) first_step: usize,
    pub(crate) last_step: usize,
}

impl ExecutionPlan {
    /// The weights that launches refer to, each once.
    pub(crate) fn weights(&self) -> Vec<Arc<DeviceWeights>> {
        let places = self.stages.iter().flat_map(Stage::places);
        let mut weights: Vec<Arc<DeviceWeights>> = places
            .filter_map(|place| match place {
                Place::Weights(weights) => Some(weights.clone()),
                _ => None,
            })
            .collect();
        weights.sort_by_key(Arc::as_ptr);
        weights.dedup_by(|left, right| Arc::ptr_eq(left, right));
        weights
    }
}

/// One of the graph's required inputs.
#[derive(Clone)]
pub(crate) struct PlannedInput {
    pub(crate) name: String,
    /// What it must be.
    pub(crate) fact: Fact,
    /// What its buffer on the device holds; `None` where the device does not read it.
    pub(crate) uploaded: Option<DeviceValue>,
}

/// Where an output is given back from.
#[derive(Clone)]
pub(crate) enum OutputSource {
    /// One of the output buffers, under the output's own shape.
    Device { buffer: usize, shape: Vec<usize> },
    /// A value on the host.
    Host(HostOperand),
}
