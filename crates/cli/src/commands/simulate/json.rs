//! Results for machines.

use serde_json::{Value, json};
use weft_simulator::{DeviceOutcome, World};

use super::play::{Played, Seen};
use super::tables::held;
use crate::workload::Workload;

pub(super) fn report(workload: &Workload, all: &[Played]) -> Value {
    let Workload { name, world, device, devices } = workload;
    json!({
        "workload": name,
        "device": device.name,
        "devices": devices,
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
    let mut report = json!({
        "policy": played.policy.name,
        "attainment": played.outcome.attainment(),
        "promises_kept": played.outcome.promises_kept(),
        "prediction_error": played.prediction_error.map(|error| {
            json!({ "median": error.median, "p95": error.p95 })
        }),
        "goodput_per_s": played.goodput_per_s(world),
        "busy": played.busy(world),
        "slos_held": held(world, played).0,
        "partitions": {
            "prepared": changes.prepared,
            "activated": changes.activated,
            "deactivated": changes.deactivated,
        },
        "models": models.collect::<Vec<_>>(),
    });
    match &played.seen {
        Seen::Device { series, .. } => {
            report["intervals"] = json!({
                "seconds": series.interval_s(),
                "arrived": series.arrived,
                "in_time": series.in_time,
            });
        }
        Seen::Fleet { devices, replicas } => {
            let device = |device: &DeviceOutcome| {
                json!({
                    "models": device.models,
                    "arrived": device.arrived,
                    "in_time": device.in_time,
                    "busy": played.busy_share(world, device.busy_unit_seconds),
                })
            };
            report["devices"] = devices.iter().map(device).collect();
            report["replicas"] = json!(replicas);
        }
    }
    report
}
