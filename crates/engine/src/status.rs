//! What an engine does at one moment, for people and metrics.

use std::collections::HashMap;
use std::time::Duration;

use weft_scheduler::{PredictionError, UnitMask};

use crate::model::ModelKey;
use crate::shared::{Services, Shared};

/// An engine at one moment.
#[derive(Clone, Debug)]
pub struct EngineStatus {
    /// The name of its policy; empty where it serves nothing.
    pub policy: &'static str,
    /// Partitions that have their units.
    pub partitions: Vec<PartitionStatus>,
    /// Models that are served, in the order in which they were given.
    pub models: Vec<ModelStatus>,
    /// How far predictions were off of late.
    pub prediction_error: Option<PredictionError>,
    /// A layout is searched for, or partitions are made ready.
    pub is_changing: bool,
}

/// A partition that has its units.
#[derive(Clone, Debug)]
pub struct PartitionStatus {
    /// Its number.
    pub id: u32,
    /// Its units.
    pub units: UnitMask,
    /// Models that are ready on it.
    pub models: Vec<ModelKey>,
    /// What it runs.
    pub running: Option<RunningStatus>,
}

/// A batch that runs.
#[derive(Clone, Copy, Debug)]
pub struct RunningStatus {
    /// What runs.
    pub model: ModelKey,
    /// Entries of the batch.
    pub rows: u32,
    /// For how long it has run.
    pub elapsed: Duration,
    /// How long it was expected to take.
    pub expected: Duration,
}

/// A model that is served.
#[derive(Clone, Copy, Debug)]
pub struct ModelStatus {
    /// Which.
    pub model: ModelKey,
    /// Rows that wait to be run.
    pub waiting: usize,
}

pub(crate) fn of(shared: &Shared) -> EngineStatus {
    let services = shared.services();
    let Some(service) = &services.current else {
        return EngineStatus {
            policy: "",
            partitions: Vec::new(),
            models: Vec::new(),
            prediction_error: None,
            is_changing: services.next.is_some(),
        };
    };
    let now = shared.clock.now();
    let duration = |span: weft_scheduler::Span| Duration::from_nanos(span.nanos());
    let active = service.partitions.iter().filter(|(_, partition)| partition.is_active);
    let mut partitions: Vec<PartitionStatus> = active
        .map(|(id, partition)| PartitionStatus {
            id: id.0,
            units: partition.units,
            models: partition.models().map(|id| service.models[id.index()].key).collect(),
            running: partition.running.map(|running| RunningStatus {
                model: service.models[running.model.index()].key,
                rows: running.rows,
                elapsed: duration(now.since(running.since)),
                expected: duration(running.expected),
            }),
        })
        .collect();
    partitions.sort_by_key(|partition| partition.id);
    let mut waiting: HashMap<ModelKey, usize> = HashMap::new();
    for row in service.waiting.values() {
        *waiting.entry(row.call.model).or_default() += 1;
    }
    let waits = |key| waiting.get(&key).copied().unwrap_or_default();
    let models = service.models.iter();
    EngineStatus {
        policy: service.policy.name(),
        partitions,
        models: models
            .map(|model| ModelStatus { model: model.key, waiting: waits(model.key) })
            .collect(),
        prediction_error: service.policy.prediction_error(),
        is_changing: service.outstanding > 0 || services.next.is_some(),
    }
}

/// Rows of a model that wait or run.
pub(crate) fn waiting(services: &Services, model: ModelKey) -> usize {
    let Some(service) = &services.current else { return 0 };
    let waiting = service.waiting.values().filter(|row| row.call.model == model).count();
    let running = service.partitions.values().filter_map(|partition| partition.running);
    let running = running.filter(|running| service.models[running.model.index()].key == model);
    waiting + running.map(|running| running.rows as usize).sum::<usize>()
}
