//! Results for machines.

use serde_json::{Map, Value, json};
use weft_load::{Histogram, Interval, ModelOutcome, Outcome, Reasons};

use super::Task;
use super::tables::PERCENTILES;

pub(super) fn report(task: &Task, outcome: &Outcome) -> Value {
    let total = outcome.total();
    let mut report = json!({
        "server": task.target.address,
        "protocol": task.target.protocol.to_string(),
        "connections": task.session.connections,
        "shared_memory": task.session.shared_memory,
        "threads": task.session.threads,
        "seed": task.run.seed,
    });
    add(&mut report, outcome_of(outcome));
    report["total"] = model(outcome, &total, outcome.attainment());
    report
}

/// What came of one run.
pub(super) fn outcome_of(outcome: &Outcome) -> Value {
    let total = outcome.total();
    let models = outcome.models.iter().map(|row| model(outcome, row, row.attainment()));
    json!({
        "seconds": outcome.length.seconds(),
        "warm_up_seconds": outcome.warm_up.seconds(),
        "is_interrupted": outcome.is_interrupted,
        "generator_fell_behind": total.fell_behind(),
        "generator_load": outcome.generator_load,
        "attainment": outcome.attainment(),
        "models": models.collect::<Vec<_>>(),
    })
}

fn add(report: &mut Value, more: Value) {
    if let (Value::Object(report), Value::Object(more)) = (report, more) {
        report.extend(more);
    }
}

fn model(outcome: &Outcome, row: &ModelOutcome, attainment: Option<f64>) -> Value {
    let mut value = json!({
        "due": row.due,
        "sent": row.sent,
        "answered": row.answered,
        "refused": reasons(&row.refused),
        "failed": reasons(&row.failed),
        "dropped": row.dropped,
        "waited_for_connection": row.waited,
        "attainment": attainment,
        "due_per_s": outcome.per_s(row.due),
        "answered_per_s": outcome.per_s(row.answered),
        "latency_us": percentiles(&row.latencies),
        "send_delay_us": percentiles(&row.send_delays),
        "connection_wait_us": percentiles(&row.connection_waits),
    });
    if !row.name.is_empty() {
        add(
            &mut value,
            json!({
                "model": row.name,
                "slo_us": row.slo.map(|slo| slo.us()),
                "in_time": row.in_time,
                "intervals": intervals(outcome, &row.intervals),
            }),
        );
    }
    value
}

fn percentiles(histogram: &Histogram) -> Value {
    if histogram.count() == 0 {
        return Value::Null;
    }
    let shown = PERCENTILES.map(|(share, name)| (name.to_string(), histogram.quantile(share)));
    let ends = [("mean", histogram.mean()), ("max", histogram.quantile(1.0))];
    let ends = ends.map(|(name, value)| (name.to_string(), value));
    let all = shown.into_iter().chain(ends).map(|(name, value)| (name, json!(value.us())));
    Value::Object(all.collect())
}

fn reasons(reasons: &Reasons) -> Value {
    let all = reasons.iter().map(|(name, reason)| {
        (name.to_string(), json!({ "count": reason.count, "example": reason.example }))
    });
    Value::Object(all.collect::<Map<String, Value>>())
}

fn intervals(outcome: &Outcome, intervals: &[Interval]) -> Value {
    let interval = |interval: &Interval| {
        json!({
            "due": interval.due,
            "in_time": interval.in_time,
            "latency_us": percentiles(&interval.latencies),
        })
    };
    json!({
        "seconds": outcome.interval.seconds(),
        "all": intervals.iter().map(interval).collect::<Vec<_>>(),
    })
}
