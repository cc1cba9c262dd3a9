//! A load that moves, served by Weft: what becomes of requests while it changes partitions.

use anyhow::{Result, anyhow};
use serde_json::{Value as Json, json};
use weft_scheduler::Span;
use weft_scheduler::policies::named;
use weft_simulator::{Outcome, World, run};

use super::most_load::{Case, MostLoad, OWN};
use super::parallel::on_all_cores;
use crate::bench::gpu::held;
use crate::progress;
use crate::table::Table;

/// The load, as a share of the most that is carried.
const LOAD: f64 = 0.8;

/// The share of requests that is promised to be in time.
const LEAST_IN_TIME: f64 = 0.98;

/// How long the processes of a shared GPU take to start anew with other limits.
const RESTART: Span = Span::from_nanos(10_000_000_000);

/// What the table shows.
pub(super) const ABOUT: &str = "\
a load that moves, at 80 % of what weft carries: requests by what came of them, and partitions that took units; changes of
partitions are prepared beside what runs, take 10 s to prepare as restarts of processes do, or never come";

/// What a change of partitions costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// What the workload says.
    AsItIs,
    /// Each partition takes as long to make ready as a restart.
    Restarts,
    /// There is none: plans come too late.
    Never,
}

impl Change {
    const ALL: [Change; 3] = [Change::AsItIs, Change::Restarts, Change::Never];

    fn in_words(self) -> &'static str {
        match self {
            Change::AsItIs => "prepared beside",
            Change::Restarts => "10 s to prepare",
            Change::Never => "never",
        }
    }

    fn applied_to(self, mut world: World) -> World {
        match self {
            Change::AsItIs => {}
            Change::Restarts => world.preparation = RESTART,
            Change::Never => world.planning = world.length * 2.0,
        }
        world
    }
}

/// A case at its load, and what came of it.
pub(super) struct Moved {
    mix: &'static str,
    slo_factor: f64,
    change: Change,
    rate_per_s: f64,
    outcome: Outcome,
}

/// Runs the cases that move at a share of the most load that Weft carries there.
pub(super) fn run_all(cases: &[Case], found: &[MostLoad]) -> Result<Vec<Moved>> {
    let moving = cases.iter().zip(found).filter(|(case, most)| case.is_moving && most.own() > 0.0);
    let jobs: Vec<(&Case, f64, Change)> = moving
        .flat_map(|(case, most)| Change::ALL.map(|change| (case, most.own() * LOAD, change)))
        .collect();
    on_all_cores(&jobs, |&(case, rate_per_s, change)| {
        let world = change.applied_to(case.world.scaled(rate_per_s / case.rate_per_s()));
        let known = named(OWN).expect("it is on the list");
        let outcome = run(&world, &mut *known.make(world.served_device()))
            .map_err(|violation| anyhow!("{}: {OWN} broke a rule: {violation:?}", case.name()))?;
        progress::note(format!("{}, changes {}: done", case.name(), change.in_words()));
        let (mix, slo_factor) = (case.mix, case.slo_factor);
        Ok(Moved { mix, slo_factor, change, rate_per_s, outcome })
    })
}

impl Moved {
    /// Requests of which nothing came.
    fn lost(&self) -> u64 {
        let total = self.outcome.total();
        total.arrived - (total.in_time + total.late + total.refused + total.shed)
    }

    /// The lowest share in time of any model.
    fn worst(&self) -> f64 {
        self.outcome.models.iter().map(|model| model.attainment()).fold(1.0, f64::min)
    }

    /// Whether the promise holds; it is of changes as they are.
    fn holds(&self) -> Option<bool> {
        let is_promised = self.change == Change::AsItIs;
        is_promised.then(|| self.lost() == 0 && self.outcome.attainment() >= LEAST_IN_TIME)
    }

    fn json(&self) -> Json {
        let total = self.outcome.total();
        json!({
            "mix": self.mix,
            "slo_factor": self.slo_factor,
            "changes": self.change.in_words(),
            "rate_per_s": self.rate_per_s,
            "attainment": self.outcome.attainment(),
            "attainment_of_the_worst_model": self.worst(),
            "arrived": total.arrived,
            "lost": self.lost(),
            "late": total.late,
            "shed": total.shed,
            "refused": total.refused,
            "partitions_activated": self.outcome.reconfigurations.activated,
            "holds": self.holds(),
        })
    }
}

pub(super) fn table(all: &[Moved]) -> Table {
    let mut table = Table::new([
        "mix",
        "slo",
        "changes",
        "requests/s",
        "in time %",
        "held",
        "worst model %",
        "lost",
        "late",
        "shed",
        "refused",
        "activated",
    ]);
    for moved in all {
        let total = moved.outcome.total();
        table.row([
            moved.mix.to_string(),
            format!("{}x", moved.slo_factor),
            moved.change.in_words().to_string(),
            format!("{:.0}", moved.rate_per_s),
            format!("{:.2}", moved.outcome.attainment() * 100.0),
            moved.holds().map_or(String::new(), held),
            format!("{:.2}", moved.worst() * 100.0),
            moved.lost().to_string(),
            total.late.to_string(),
            total.shed.to_string(),
            total.refused.to_string(),
            moved.outcome.reconfigurations.activated.to_string(),
        ]);
    }
    table
}

/// The same for machines.
pub(super) fn json(all: &[Moved]) -> Json {
    all.iter().map(Moved::json).collect()
}

#[cfg(test)]
mod tests {
    use weft_simulator::ModelOutcome;

    use super::*;

    fn moved(change: Change, models: &[[u64; 3]]) -> Moved {
        let model = |&[arrived, in_time, refused]: &[u64; 3]| ModelOutcome {
            arrived,
            in_time,
            refused,
            ..Default::default()
        };
        let outcome = Outcome { models: models.iter().map(model).collect(), ..Default::default() };
        Moved { mix: "e", slo_factor: 5.0, change, rate_per_s: 1.0, outcome }
    }

    #[test]
    fn what_is_promised_is_that_nothing_is_lost_and_nearly_all_is_in_time() {
        for (change, models, holds) in [
            (Change::AsItIs, [[100, 100, 0], [100, 96, 4]], Some(true)),
            (Change::AsItIs, [[100, 99, 1], [100, 96, 4]], Some(false)),
            (Change::AsItIs, [[100, 100, 0], [100, 99, 0]], Some(false)),
            (Change::Restarts, [[100, 50, 50], [100, 100, 0]], None),
        ] {
            assert_eq!(moved(change, &models).holds(), holds, "{models:?}");
        }
        let one = moved(Change::AsItIs, &[[100, 100, 0], [100, 90, 7]]);
        assert_eq!((one.worst(), one.lost()), (0.9, 3));
    }
}
