//! Results as tables: policies, and their models.

use weft_scheduler::Span;
use weft_simulator::{DeviceOutcome, ModelOutcome, SimulatedModel, World};

use super::play::{Played, Seen};
use crate::table::Table;

/// With more models than this, only the worst of each policy are shown unless all are asked for.
const MANY_MODELS: usize = 8;
const WORST_SHOWN: usize = 3;

fn percent(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

fn ms(span: Span) -> String {
    format!("{:.2}", span.us() * 1e-3)
}

/// The 99th percentile in relation to the objective, where there is one.
pub(super) fn p99_to_slo(model: &SimulatedModel, outcome: &ModelOutcome) -> Option<f64> {
    let slo = model.slo?;
    Some(outcome.latency(0.99).us() / slo.latency.us())
}

/// How many models have an objective, and how many of them kept it.
pub(super) fn held(world: &World, played: &Played) -> (usize, usize) {
    let promised =
        world.models.iter().zip(&played.outcome.models).filter_map(|(model, outcome)| {
            let slo = model.slo?;
            Some(outcome.attainment() >= slo.percentile)
        });
    let kept: Vec<bool> = promised.collect();
    (kept.iter().filter(|kept| **kept).count(), kept.len())
}

/// One row for each policy.
pub(super) fn summary(world: &World, all: &[Played]) -> Table {
    let mut table = Table::new([
        "policy",
        "in time %",
        "kept %",
        "goodput/s",
        "refused",
        "shed",
        "late",
        "busy %",
        "p99/slo",
        "slos held",
    ]);
    for played in all {
        let total = played.outcome.total();
        let models = world.models.iter().zip(&played.outcome.models);
        let ratios = models.filter_map(|(model, outcome)| p99_to_slo(model, outcome));
        let worst = ratios.max_by(f64::total_cmp);
        let (kept, promised) = held(world, played);
        table.row([
            played.policy.name.to_string(),
            percent(played.outcome.attainment()),
            percent(played.outcome.promises_kept()),
            format!("{:.0}", played.goodput_per_s(world)),
            total.refused.to_string(),
            total.shed.to_string(),
            total.late.to_string(),
            format!("{:.0}", played.busy(world) * 100.0),
            worst.map_or("-".into(), |ratio| format!("{ratio:.2}")),
            format!("{kept} of {promised}"),
        ]);
    }
    table
}

/// For each policy what came of the devices of a fleet, from the least to the most.
pub(super) fn by_device(world: &World, all: &[Played]) -> Table {
    let mut table = Table::new(["policy", "on each device", "least", "median", "most"]);
    for played in all {
        let Seen::Fleet { devices, .. } = &played.seen else { continue };
        let mut row = |what: &str, values: Vec<f64>, digits: usize| {
            let mut sorted = values;
            sorted.sort_by(f64::total_cmp);
            let Some(last) = sorted.len().checked_sub(1) else { return };
            let at = |place: usize| format!("{:.digits$}", sorted[place]);
            let cells = [at(0), at(last / 2), at(last)];
            table.row([played.policy.name.to_string(), what.to_string()].into_iter().chain(cells));
        };
        let in_time =
            |device: &DeviceOutcome| device.in_time as f64 / device.arrived.max(1) as f64 * 100.0;
        let busy =
            |device: &DeviceOutcome| played.busy_share(world, device.busy_unit_seconds) * 100.0;
        let came = devices.iter().filter(|device| device.arrived > 0);
        row("in time %", came.map(in_time).collect(), 2);
        row("busy %", devices.iter().map(busy).collect(), 0);
        row("models", devices.iter().map(|device| device.models as f64).collect(), 0);
    }
    table
}

/// The models of each policy: all of them side by side, or the worst where there are many.
pub(super) fn by_model(world: &World, all: &[Played], wants_all: bool) -> String {
    let mut table = Table::new([
        "model",
        "policy",
        "rate/s",
        "slo ms",
        "in time %",
        "kept %",
        "p50 ms",
        "p99 ms",
        "p99/slo",
    ]);
    if wants_all || world.models.len() <= MANY_MODELS {
        for model in 0..world.models.len() {
            for played in all {
                add_model(&mut table, world, played, model);
            }
        }
        return table.render();
    }
    for played in all {
        for model in worst(world, played) {
            add_model(&mut table, world, played, model);
        }
    }
    format!(
        "of {} models the {WORST_SHOWN} worst of each policy; --all-models shows all\n\n{}",
        world.models.len(),
        table.render()
    )
}

/// The models that miss their objectives by most, the worst first.
fn worst(world: &World, played: &Played) -> Vec<usize> {
    let missed = |at: usize| {
        let percentile = world.models[at].slo.map_or(0.0, |slo| slo.percentile);
        percentile - played.outcome.models[at].attainment()
    };
    let mut models: Vec<usize> = (0..world.models.len()).collect();
    models.sort_by(|&left, &right| missed(right).total_cmp(&missed(left)));
    models.truncate(WORST_SHOWN);
    models
}

fn add_model(table: &mut Table, world: &World, played: &Played, at: usize) {
    let (model, outcome) = (&world.models[at], &played.outcome.models[at]);
    table.row([
        model.name.clone(),
        played.policy.name.to_string(),
        format!("{:.0}", outcome.arrived as f64 / world.length.seconds()),
        model.slo.map_or("-".into(), |slo| ms(slo.latency)),
        percent(outcome.attainment()),
        percent(outcome.promises_kept()),
        ms(outcome.latency(0.5)),
        ms(outcome.latency(0.99)),
        p99_to_slo(model, outcome).map_or("-".into(), |ratio| format!("{ratio:.2}")),
    ]);
}
/// How far predictions of latencies were off, for each policy that makes any; `None` where none does.
pub(super) fn prediction_errors(all: &[Played]) -> Option<String> {
    let errors: Vec<String> = all
        .iter()
        .filter_map(|played| {
            let error = played.prediction_error?;
            let percent = |share: f64| format!("{:.1}", share * 100.0);
            Some(format!(
                "{} {} / {}",
                played.policy.name,
                percent(error.median),
                percent(error.p95)
            ))
        })
        .collect();
    let said = format!("predictions off by, % (median / 95th percentile): {}", errors.join(", "));
    (!errors.is_empty()).then_some(said)
}
