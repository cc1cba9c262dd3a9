//! `weft simulate`: policies side by side on a workload, under virtual time.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde_json::{Value, json};
use weft_scheduler::policies::ALL;
use weft_simulator::{Outcome, World, run as simulate};

use crate::progress;
use crate::table::Table;
use crate::workload::{Workload, WorkloadOptions};

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    workload: WorkloadOptions,
    /// Policies to run, side by side [default: all]
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(policy_names()))]
    policies: Vec<String>,
    /// Also write the results as JSON to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The policies' names, with what each does.
fn policy_names() -> Vec<PossibleValue> {
    ALL.iter().map(|known| PossibleValue::new(known.name).help(known.description)).collect()
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Workload { name, world, device } = options.workload.read()?;
    let is_chosen = |name: &str| {
        options.policies.is_empty() || options.policies.iter().any(|other| other == name)
    };
    let chosen = ALL.iter().filter(|known| is_chosen(known.name));
    let mut summary = Table::new([
        "policy",
        "requests",
        "in time %",
        "late",
        "refused",
        "shed",
        "goodput/s",
        "busy %",
    ]);
    let mut by_model =
        Table::new(["model", "policy", "rate/s", "slo ms", "in time %", "p50 ms", "p99 ms"]);
    let mut results = Vec::new();
    let start = Instant::now();
    let mut simulated = 0;
    for known in chosen {
        let mut policy = known.make(world.served_device());
        progress::show(format!("simulating {}", policy.name()));
        let outcome = simulate(&world, &mut *policy)
            .map_err(|violation| anyhow!("policy {} broke a rule: {violation:?}", policy.name()))?;
        simulated += outcome.models.iter().map(|model| model.arrived).sum::<u64>();
        add_summary(&mut summary, policy.name(), &world, &outcome);
        add_models(&mut by_model, policy.name(), &world, &outcome);
        results.push(as_json(policy.name(), &world, &outcome));
    }
    progress::clear();
    println!("{name} on {}, {} units\n", device.name, device.units);
    println!("{}\n\n{}", summary.render(), by_model.render());
    let elapsed = start.elapsed().as_secs_f64();
    println!(
        "\n{simulated} requests of {:.0} simulated seconds in {elapsed:.2} s, seed {}",
        world.length.seconds(),
        world.seed
    );
    if let Some(path) = &options.json {
        let report = json!({ "units": world.units, "seed": world.seed, "policies": results });
        std::fs::write(path, serde_json::to_string_pretty(&report)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The share of the units' time in which they ran something.
fn busy(world: &World, outcome: &Outcome) -> f64 {
    outcome.busy_unit_seconds / (f64::from(world.units) * outcome.length.seconds().max(1e-9))
}

fn add_summary(table: &mut Table, policy: &str, world: &World, outcome: &Outcome) {
    let total = |read: fn(&weft_simulator::ModelOutcome) -> u64| {
        outcome.models.iter().map(read).sum::<u64>()
    };
    let in_time = total(|model| model.in_time);
    table.row([
        policy.to_string(),
        total(|model| model.arrived).to_string(),
        format!("{:.2}", outcome.attainment() * 100.0),
        total(|model| model.late).to_string(),
        total(|model| model.refused).to_string(),
        total(|model| model.shed).to_string(),
        format!("{:.0}", in_time as f64 / world.length.seconds()),
        format!("{:.0}", busy(world, outcome) * 100.0),
    ]);
}

fn add_models(table: &mut Table, policy: &str, world: &World, outcome: &Outcome) {
    for (model, result) in world.models.iter().zip(&outcome.models) {
        table.row([
            model.name.clone(),
            policy.to_string(),
            format!("{:.0}", result.arrived as f64 / world.length.seconds()),
            model.slo.map_or("-".into(), |slo| format!("{:.2}", slo.latency.us() * 1e-3)),
            format!("{:.2}", result.attainment() * 100.0),
            format!("{:.2}", result.latency(0.5).us() * 1e-3),
            format!("{:.2}", result.latency(0.99).us() * 1e-3),
        ]);
    }
}

fn as_json(policy: &str, world: &World, outcome: &Outcome) -> Value {
    let models: Vec<Value> = world
        .models
        .iter()
        .zip(&outcome.models)
        .map(|(model, result)| {
            json!({
                "model": model.name,
                "slo_us": model.slo.map(|slo| slo.latency.us()),
                "arrived": result.arrived,
                "in_time": result.in_time,
                "late": result.late,
                "refused": result.refused,
                "shed": result.shed,
                "latency_us_p50": result.latency(0.5).us(),
                "latency_us_p99": result.latency(0.99).us(),
            })
        })
        .collect();
    json!({
        "policy": policy,
        "attainment": outcome.attainment(),
        "busy": busy(world, outcome),
        "models": models,
    })
}
