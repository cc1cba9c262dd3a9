//! What an engine does at one moment, for people and metrics.

use std::time::Duration;

use weft_scheduler::plan::Slo;
use weft_scheduler::{GroupId, ModelId, PredictionError, Span, Time, UnitMask};

use crate::model::{EngineModel, ModelKey};
use crate::service::{Layer, Service};
use crate::shared::{Services, Shared};

/// An engine at one moment.
#[derive(Clone, Debug)]
pub struct EngineStatus {
    /// Units that it serves on.
    pub units: u32,
    /// Partitions that have their units.
    pub partitions: Vec<PartitionStatus>,
    /// Models that are served.
    pub models: Vec<ModelStatus>,
    /// How far predictions were off of late, where there is an objective to hold.
    pub prediction_error: Option<PredictionError>,
    /// Mixes that are ready: their models, and the size of each one's batch.
    pub mixes: Vec<Vec<(ModelKey, u32)>>,
    /// A layout is searched for, or partitions are made ready.
    pub is_changing: bool,
}

/// A partition that has its units.
#[derive(Clone, Debug)]
pub struct PartitionStatus {
    /// Its number, among those of its layer.
    pub id: u32,
    /// It runs while others leave its units idle.
    pub is_background: bool,
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
    /// What runs; in a group, the model of the first request.
    pub model: ModelKey,
    /// Entries of the batch.
    pub rows: u32,
    /// Models whose requests are in it.
    pub tenants: u32,
    /// Entries of a group run in one launch.
    pub is_fused: bool,
    /// Batches of different models run together, by a schedule.
    pub is_mixed: bool,
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
    /// What was promised.
    pub slo: Option<Slo>,
    /// The group that it is a member of.
    pub group: Option<GroupId>,
    /// It is served apart from its group, since it held the others up.
    pub is_evicted: bool,
    /// Rows that wait to be run.
    pub waiting: usize,
    /// Rows that have come each second of late, where the policy follows that.
    pub rate_per_s: Option<f64>,
}

pub(crate) fn of(shared: &Shared, units: u32) -> EngineStatus {
    let services = shared.services();
    let now = shared.clock.now();
    let current = || services.current.iter();
    EngineStatus {
        units,
        partitions: current().flat_map(|service| partitions(service, now)).collect(),
        models: current().flat_map(|service| models(service, now)).collect(),
        prediction_error: current().find_map(|service| service.policy.prediction_error()),
        mixes: current().flat_map(mixes).collect(),
        is_changing: !services.next.is_empty() || current().any(|service| service.outstanding > 0),
    }
}

fn partitions(service: &Service, now: Time) -> Vec<PartitionStatus> {
    let key = |model: ModelId| service.models[model.index()].key;
    let duration = |span: Span| Duration::from_nanos(span.nanos());
    let active = service.partitions.iter().filter(|(_, partition)| partition.is_active);
    let mut partitions: Vec<PartitionStatus> = active
        .map(|(id, partition)| PartitionStatus {
            id: id.0,
            is_background: service.layer == Layer::Background,
            units: partition.units,
            models: partition.models().map(key).collect(),
            running: partition.launches.last().map(|running| RunningStatus {
                model: key(running.model),
                rows: running.rows(),
                tenants: running.tenants.len() as u32,
                is_fused: running.is_fused,
                is_mixed: running.is_mixed,
                elapsed: duration(now.since(running.since)),
                expected: duration(running.expected),
            }),
        })
        .collect();
    partitions.sort_by_key(|partition| partition.id);
    partitions
}

fn mixes(service: &Service) -> impl Iterator<Item = Vec<(ModelKey, u32)>> {
    service.ready_mixes().map(|mix| mix.models.clone())
}

fn models(service: &Service, now: Time) -> Vec<ModelStatus> {
    let status = |(id, model): (u32, &EngineModel)| ModelStatus {
        model: model.key,
        slo: model.served.slo,
        group: model.served.group,
        is_evicted: service.policy.is_evicted(ModelId(id), now),
        waiting: service.queued(model.key),
        rate_per_s: service.policy.rate_per_s(ModelId(id), now),
    };
    (0u32..).zip(service.models.iter()).map(status).collect()
}

/// Rows of a model that wait or run.
pub(crate) fn waiting(services: &Services, model: ModelKey) -> usize {
    let rows = |service: &Service| {
        let running = service.partitions.values().flat_map(|partition| &partition.launches);
        let tenants = running.flat_map(|running| &running.tenants);
        let own = tenants.filter(|(tenant, _)| *tenant == model);
        service.queued(model) + own.map(|(_, rows)| *rows as usize).sum::<usize>()
    };
    services.current.iter().map(rows).sum()
}
