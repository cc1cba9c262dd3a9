//! The state of the server as one document.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weft_engine::{EngineStatus, PartitionStatus};
use weft_scheduler::GroupId;
use weft_scheduler::plan::Slo;

use super::Office;
use super::recent::Lately;
use super::status_document::{
    LatencyDocument, MembershipDocument, MemoryDocument, ModelDocument, ObjectiveDocument,
    PartitionDocument, PredictionDocument, RunningDocument, StatusDocument,
};
use crate::inference::Serving;
use crate::metrics::{ModelCounts, Outcome, Process};
use crate::models::ModelTable;
use crate::repository::ModelState;

/// The document of this moment, as JSON.
pub(super) fn write(office: &Office) -> String {
    // Documents are made of texts, numbers and lists, which can always be written.
    serde_json::to_string(&document(office)).unwrap_or_default()
}

fn document(office: &Office) -> StatusDocument {
    let serving = &*office.serving;
    let engine = serving.engine.status();
    let by_name = ByName::of(&engine, &serving.models);
    let metrics = serving.models.metrics();
    let (recent, now) = (office.recent(), Instant::now());
    let mut used = Used::default();
    let mut models = Vec::new();
    for (name, state) in states(serving) {
        let ever = metrics.of(&name).counts();
        let lately = recent.of(&name, &ever, now);
        used.add(&lately);
        let engine = by_name.0.get(&name).copied().unwrap_or_default();
        models.push(model(name, state, engine, &ever, &lately));
    }
    let error = engine.prediction_error;
    StatusDocument {
        version: env!("CARGO_PKG_VERSION").into(),
        uptime_s: office.started.elapsed().unwrap_or_default().as_secs_f64(),
        window_s: used.seconds,
        units: engine.units,
        is_changing: engine.is_changing,
        repartitions: metrics.repartitions(),
        utilisation: used.share(used.unit_ns, engine.units),
        background_utilisation: used.share(used.background_unit_ns, engine.units),
        prediction_error: error
            .map(|error| PredictionDocument { median: error.median, p95: error.p95 }),
        memory: serving.repository.memory().map(|memory| MemoryDocument {
            taken_bytes: memory.taken_bytes,
            budget_bytes: memory.budget_bytes,
        }),
        resident_bytes: Process::now().resident_bytes,
        connections: connections(serving),
        requests_in_flight: serving.door.inside(),
        partitions: engine
            .partitions
            .iter()
            .map(|partition| partition_of(partition, &serving.models))
            .collect(),
        models,
    }
}

/// Connections of clients that are open.
pub(super) fn connections(serving: &Serving) -> usize {
    serving.limits.connections.saturating_sub(serving.room.available_permits())
}

/// The state of every model by name: the best of its versions'.
fn states(serving: &Serving) -> BTreeMap<String, ModelState> {
    let mut states: BTreeMap<String, ModelState> = BTreeMap::new();
    for entry in serving.repository.index() {
        let state = states.entry(entry.name).or_insert(entry.state);
        // They are declared from best to worst.
        if (entry.state as u8) < (*state as u8) {
            *state = entry.state;
        }
    }
    states
}

/// What an engine knows of the versions of one model.
#[derive(Clone, Copy, Default)]
pub(super) struct OfEngine {
    pub(super) slo: Option<Slo>,
    pub(super) group: Option<GroupId>,
    pub(super) is_evicted: bool,
    pub(super) waiting: usize,
    pub(super) units_held: u32,
}

/// What an engine knows of models, by name.
#[derive(Default)]
pub(super) struct ByName(pub(super) BTreeMap<String, OfEngine>);

impl ByName {
    pub(super) fn of(engine: &EngineStatus, table: &ModelTable) -> Self {
        let mut by_name = Self::default();
        for model in &engine.models {
            let Some(entry) = table.of_key(model.model) else { continue };
            let partitions = engine.partitions.iter();
            let held = partitions.filter(|partition| partition.models.contains(&model.model));
            let of = by_name.0.entry(entry.name.clone()).or_default();
            of.slo = of.slo.or(model.slo);
            of.group = of.group.or(model.group);
            of.is_evicted |= model.is_evicted;
            of.waiting += model.waiting;
            of.units_held += held.map(|partition| partition.units.len()).sum::<u32>();
        }
        by_name
    }
}

/// Time of units that was used of late.
#[derive(Default)]
struct Used {
    unit_ns: u64,
    background_unit_ns: u64,
    seconds: f64,
}

impl Used {
    fn add(&mut self, lately: &Lately) {
        self.unit_ns += lately.counts.busy_unit_ns;
        self.background_unit_ns += lately.counts.background_unit_ns;
        self.seconds = lately.seconds;
    }

    fn share(&self, unit_ns: u64, units: u32) -> f64 {
        let all = self.seconds * f64::from(units);
        if all > 0.0 { (unit_ns as f64 / 1e9 / all).min(1.0) } else { 0.0 }
    }
}

fn model(
    name: String,
    state: ModelState,
    engine: OfEngine,
    ever: &ModelCounts,
    lately: &Lately,
) -> ModelDocument {
    let counts = &lately.counts;
    let ratio = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let answered = counts.of(Outcome::Ok);
    let at = |share| answered.quantile(share).map(|nanos| nanos / 1e6);
    ModelDocument {
        name,
        state: state.name().into(),
        objective: engine.slo.map(|slo| ObjectiveDocument {
            percentile: slo.percentile,
            latency_ms: slo.latency.us() / 1e3,
        }),
        attainment: ratio(counts.in_time, counts.with_objective),
        requests_per_s: lately.per_s(counts.request_count()),
        refused_per_s: lately.per_s(counts.of(Outcome::Refused).total()),
        latency: at(0.5).zip(at(0.99)).map(|(p50_ms, p99_ms)| LatencyDocument { p50_ms, p99_ms }),
        queue_rows: engine.waiting,
        batch_rows: ratio(counts.batch_rows.sum, counts.batch_rows.total()),
        group: engine.group.map(|group| MembershipDocument {
            id: group.0,
            launch_rows: ratio(counts.fused_launch_rows, counts.fused_launches),
            is_evicted: engine.is_evicted,
        }),
        units_held: engine.units_held,
        units_asked: lately.units_asked(ever),
        prediction_error: ratio(counts.error_unit_ns, counts.expected_unit_ns),
        requests: Outcome::ALL
            .into_iter()
            .map(|outcome| (outcome.name().into(), ever.of(outcome).total()))
            .collect(),
        refusals: ever.refusals.iter().map(|(reason, count)| ((*reason).into(), *count)).collect(),
    }
}

fn partition_of(partition: &PartitionStatus, table: &ModelTable) -> PartitionDocument {
    let name = |key| table.name_of(key);
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    let running = partition.running.and_then(|running| {
        Some(RunningDocument {
            model: name(running.model)?,
            rows: running.rows,
            tenants: running.tenants,
            is_fused: running.is_fused,
            is_mixed: running.is_mixed,
            elapsed_ms: ms(running.elapsed),
            expected_ms: ms(running.expected),
        })
    });
    PartitionDocument {
        id: partition.id,
        is_background: partition.is_background,
        units: partition.units.iter().collect(),
        models: partition.models.iter().filter_map(|&key| name(key)).collect(),
        running,
    }
}
