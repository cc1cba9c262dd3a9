//! The page of metrics.

use std::collections::BTreeSet;
use std::time::{Instant, UNIX_EPOCH};

use weft_scheduler::GroupId;

use super::Office;
use super::status::{ByName, connections};
use crate::metrics::names::*;
use crate::metrics::{Exposition, ModelCounts, NANOSECONDS, Outcome, Process, ROWS, UNKNOWN};
use crate::repository::ModelState;

/// A model's name and counts.
type Counted = (String, ModelCounts);

/// All metrics at this moment.
pub(super) fn write(office: &Office) -> String {
    let mut page = Exposition::default();
    let metrics = office.serving.models.metrics();
    let all: Vec<Counted> =
        metrics.all().into_iter().map(|(name, model)| (name, model.counts())).collect();
    requests(&mut page, &all);
    // What is asked for in the name of no model never reaches the engine.
    let models: Vec<&Counted> = all.iter().filter(|(name, _)| name != UNKNOWN).collect();
    executions(&mut page, &models);
    evictions(&mut page, &models);
    objectives(&mut page, &models);
    units(&mut page, office, &models);
    server(&mut page, office);
    page.finish()
}

fn requests(page: &mut Exposition, all: &[Counted]) {
    for (name, counts) in all {
        for outcome in Outcome::ALL {
            let labels = [("model", name.as_str()), ("outcome", outcome.name())];
            page.value(REQUESTS, &labels, counts.of(outcome).total() as f64);
        }
    }
    for (name, counts) in all {
        for (reason, &count) in &counts.refusals {
            page.value(REFUSALS, &[("model", name), ("reason", reason)], count as f64);
        }
    }
    for (name, counts) in all {
        for outcome in Outcome::ALL {
            let durations = counts.of(outcome);
            // A page for many models stays small where nothing goes wrong.
            if durations.total() > 0 || (outcome == Outcome::Ok && name != UNKNOWN) {
                let labels = [("model", name.as_str()), ("outcome", outcome.name())];
                page.histogram(REQUEST_DURATION, &labels, durations, NANOSECONDS);
            }
        }
    }
}

fn executions(page: &mut Exposition, models: &[&Counted]) {
    for (name, counts) in models {
        page.histogram(QUEUE_DURATION, &[("model", name)], &counts.queued, NANOSECONDS);
    }
    for (name, counts) in models {
        page.histogram(BATCH_ROWS, &[("model", name)], &counts.batch_rows, ROWS);
    }
    for (name, counts) in models {
        page.histogram(EXECUTION_DURATION, &[("model", name)], &counts.executions, NANOSECONDS);
    }
    for (name, counts) in models {
        page.value(ROWS_ASKED, &[("model", name)], counts.rows as f64);
    }
    for (name, counts) in models {
        // A page for many models stays small where there are no groups.
        if counts.fused_rows > 0 {
            page.value(FUSED_ROWS, &[("model", name)], counts.fused_rows as f64);
        }
    }
}

fn evictions(page: &mut Exposition, models: &[&Counted]) {
    for (name, counts) in models.iter().filter(|(_, counts)| counts.evictions > 0) {
        page.value(GROUP_EVICTIONS, &[("model", name)], counts.evictions as f64);
    }
}

fn objectives(page: &mut Exposition, models: &[&Counted]) {
    for (name, counts) in models {
        page.value(OBJECTIVE_REQUESTS, &[("model", name)], counts.with_objective as f64);
    }
    for (name, counts) in models {
        page.value(OBJECTIVE_MET, &[("model", name)], counts.in_time as f64);
    }
}

fn units(page: &mut Exposition, office: &Office, models: &[&Counted]) {
    let engine = office.serving.engine.status();
    let by_name = ByName::of(&engine, &office.serving.models);
    let of = |name: &String| by_name.0.get(name).copied().unwrap_or_default();
    for (name, _) in models {
        page.value(QUEUE_ROWS, &[("model", name)], of(name).waiting as f64);
    }
    for (name, _) in models {
        page.value(UNITS_HELD, &[("model", name)], f64::from(of(name).units_held));
    }
    {
        let (recent, now) = (office.recent(), Instant::now());
        for (name, counts) in models {
            let asked = recent.of(name, counts, now).units_asked(counts);
            page.value(UNITS_ASKED, &[("model", name)], asked);
        }
    }
    let seconds = |unit_ns: u64| unit_ns as f64 / 1e9;
    for (name, counts) in models {
        for (layer, unit_ns) in
            [("foreground", counts.busy_unit_ns), ("background", counts.background_unit_ns)]
        {
            let labels = [("model", name.as_str()), ("layer", layer)];
            page.value(BUSY_UNIT_SECONDS, &labels, seconds(unit_ns));
        }
    }
    for (name, counts) in models {
        let expected = seconds(counts.expected_unit_ns);
        page.value(EXPECTED_UNIT_SECONDS, &[("model", name)], expected);
    }
    for (name, counts) in models {
        let error = seconds(counts.error_unit_ns);
        page.value(PREDICTION_ERROR_UNIT_SECONDS, &[("model", name)], error);
    }
    if let Some(error) = engine.prediction_error {
        page.value(PREDICTION_ERROR, &[("quantile", "0.5")], error.median);
        page.value(PREDICTION_ERROR, &[("quantile", "0.95")], error.p95);
    }
    let grouped = engine.models.iter().filter_map(|model| model.group);
    let groups: BTreeSet<GroupId> = grouped.clone().collect();
    page.value(GROUPS, &[], groups.len() as f64);
    page.value(GROUP_MEMBERS, &[], grouped.count() as f64);
    let evicted = engine.models.iter().filter(|model| model.is_evicted).count();
    page.value(GROUP_EVICTED_MEMBERS, &[], evicted as f64);
    let fused = office.serving.models.metrics().fused_launches();
    page.value(FUSED_LAUNCHES, &[], fused as f64);
    let mixed = office.serving.models.metrics().mixed_launches();
    page.value(MIXED_LAUNCHES, &[], mixed as f64);
    page.value(MIXES, &[], engine.mixes.len() as f64);
    page.value(UNITS, &[], f64::from(engine.units));
    for (layer, is_background) in [("foreground", false), ("background", true)] {
        let of_layer = engine.partitions.iter().filter(|it| it.is_background == is_background);
        page.value(PARTITIONS, &[("layer", layer)], of_layer.count() as f64);
    }
}

fn server(page: &mut Exposition, office: &Office) {
    let serving = &office.serving;
    page.value(REPARTITIONS, &[], serving.models.metrics().repartitions() as f64);
    let index = serving.repository.index();
    for state in ModelState::ALL {
        let count = index.iter().filter(|entry| entry.state == state).count();
        page.value(MODELS, &[("state", state.name())], count as f64);
    }
    if let Some(memory) = serving.repository.memory() {
        page.value(MODELS_MEMORY, &[], memory.taken_bytes as f64);
        page.value(MEMORY_BUDGET, &[], memory.budget_bytes as f64);
    }
    page.value(CONNECTIONS, &[], connections(serving) as f64);
    page.value(REQUESTS_IN_FLIGHT, &[], serving.door.inside() as f64);
    if let Some(spans) = &serving.spans {
        page.value(SPANS, &[("fate", "sent")], spans.sent() as f64);
        page.value(SPANS, &[("fate", "dropped")], spans.dropped() as f64);
    }
    page.value(BUILD_INFO, &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    let process = Process::now();
    if let Some(bytes) = process.resident_bytes {
        page.value(RESIDENT_MEMORY, &[], bytes as f64);
    }
    if let Some(files) = process.open_files {
        page.value(OPEN_FILES, &[], files as f64);
    }
    let started = office.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    page.value(START_TIME, &[], started.as_secs_f64());
}
