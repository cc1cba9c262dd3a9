//! Results for machines.

use serde_json::{Value, json};
use weft_simulator::World;

use super::play::Played;
use super::tables::held;
use crate::workload::Workload;

pub(super) fn report(workload: &Workload, all: &[Played]) -> Value {
    let Workload { name, world, device } = workload;
    json!({
        "workload": name,
        "device": device.name,
        "units": world.units,
        "seconds": world.length.seconds(),
        "seed": world.seed,
        "policies": all.iter().map(|played| policy(world, played)).collect::<Vec<_>>(),
    })
}

fn policy(world: &World, played: &Played) -> Value {
    let models = world.models.iter().zip(&played.outcome.models).map(|(model, outcome)| {
        json!({
            "model": model.name,
            "slo_us": model.slo.map(|slo| slo.latency.us()),
            "percentile": model.slo.map(|slo| slo.percentile),
            "arrived": outcome.arrived,
            "in_time": outcome.in_time,
            "late": outcome.late,
            "refused": outcome.refused,
            "shed": outcome.shed,
            "latency_us_p50": outcome.latency(0.5).us(),
            "latency_us_p99": outcome.latency(0.99).us(),
        })
    });
    let changes = played.outcome.reconfigurations;
    json!({
        "policy": played.policy.name,
        "attainment": played.outcome.attainment(),
        "promises_kept": played.outcome.promises_kept(),
        "goodput_per_s": played.goodput_per_s(world),
        "busy": played.busy(world),
        "slos_held": held(world, played).0,
        "partitions": {
            "prepared": changes.prepared,
            "activated": changes.activated,
            "deactivated": changes.deactivated,
        },
        "intervals": {
            "seconds": played.series.interval_s(),
            "arrived": played.series.arrived,
            "in_time": played.series.in_time,
        },
        "models": models.collect::<Vec<_>>(),
    })
}
