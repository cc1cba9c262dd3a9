//! The most load that each policy carries, side by side.

use std::path::Path;

use anyhow::{Result, anyhow};
use serde_json::json;
use weft_scheduler::Policy;
use weft_scheduler::policies::KnownPolicy;
use weft_simulator::{Capacity, World, capacity};

use crate::files;
use crate::progress;
use crate::table::Table;
use crate::terminal;
use crate::workload::Workload;

pub(super) fn run(
    workload: &Workload,
    chosen: &[&'static KnownPolicy],
    target: f64,
    json: Option<&Path>,
) -> Result<()> {
    let Workload { name, world, device, .. } = workload;
    let mut found: Vec<(&str, Capacity)> = Vec::new();
    for (index, known) in chosen.iter().enumerate() {
        progress::show(format!("searching {} ({} of {})", known.name, index + 1, chosen.len()));
        let make = |world: &World| -> Box<dyn Policy> { known.make(world.served_device()) };
        let capacity = capacity(world, &make, target)
            .map_err(|violation| anyhow!("policy {} broke a rule: {violation:?}", known.name))?;
        found.push((known.name, capacity));
    }
    progress::clear();
    let rates: Vec<f64> = found
        .iter()
        .map(|(_, capacity)| capacity.outcome.total().arrived as f64 / world.length.seconds())
        .collect();
    let ratios = to_best_other(&rates);
    if let Some(path) = json {
        let policies = found.iter().zip(rates.iter().zip(&ratios));
        let policies = policies.map(|((policy, capacity), (rate, ratio))| {
            json!({
                "policy": policy,
                "factor": capacity.factor,
                "rate_per_s": rate,
                "attainment": capacity.outcome.attainment(),
                "to_best_other": ratio,
            })
        });
        let report = json!({
            "workload": name,
            "device": device.name,
            "units": world.units,
            "seconds": world.length.seconds(),
            "seed": world.seed,
            "target": target,
            "policies": policies.collect::<Vec<_>>(),
        });
        files::write(path, &format!("{report:#}\n"))?;
    }
    let mut table = Table::new(["policy", "rates x", "requests/s", "in time %", "to best other"]);
    for ((policy, capacity), (rate, ratio)) in found.iter().zip(rates.iter().zip(&ratios)) {
        table.row([
            policy.to_string(),
            format!("{:.3}", capacity.factor),
            format!("{rate:.0}"),
            match capacity.factor > 0.0 {
                true => format!("{:.2}", capacity.outcome.attainment() * 100.0),
                false => String::new(),
            },
            ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")),
        ]);
    }
    let what = format!(
        "the most load at which {} % of the requests are answered in time, found to 1 %",
        target * 100.0
    );
    Ok(terminal::print(&format!(
        "{}\n\n{}\n\n{what}, seed {}",
        workload.title(),
        table.render(),
        world.seed
    ))?)
}

/// Each rate in relation to the best of the others, where there is one above zero.
fn to_best_other(rates: &[f64]) -> Vec<Option<f64>> {
    let ratio = |(at, rate): (usize, &f64)| {
        let others = rates.iter().enumerate().filter(|(other, _)| *other != at);
        let best = others.map(|(_, rate)| *rate).fold(0.0, f64::max);
        (best > 0.0).then(|| rate / best)
    };
    rates.iter().enumerate().map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_compared_with_the_second_and_all_others_with_it() {
        assert_eq!(
            to_best_other(&[100.0, 300.0, 200.0]),
            [Some(1.0 / 3.0), Some(1.5), Some(2.0 / 3.0)]
        );
        assert_eq!(to_best_other(&[100.0, 0.0]), [None, Some(0.0)]);
        assert_eq!(to_best_other(&[100.0]), [None]);
    }
}
