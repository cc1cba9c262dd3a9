//! The most load that each policy carries on each mix, and how Weft's compares with the others'.

use anyhow::{Result, anyhow};
use serde_json::{Map, Value as Json, json};
use weft_scheduler::Policy;
use weft_scheduler::policies::{ALL, KnownPolicy, Sharing};
use weft_simulator::{World, capacity};

use super::parallel::on_all_cores;
use crate::bench::gpu::held;
use crate::progress;
use crate::table::Table;

/// The policy that the others are compared with.
pub(super) const OWN: &str = "weft";

/// A load is carried when this share of requests is answered in time.
pub(super) const TARGET: f64 = 0.99;

/// What is promised: so many times the best that shares time alone or space by fixed partitions, and no less than this
/// share of the best of all others.
const LEAST_TO_FIXED: f64 = 1.5;
const LEAST_TO_ANY: f64 = 0.98;

/// A mix under one objective.
pub(super) struct Case {
    pub(super) mix: &'static str,
    pub(super) slo_factor: f64,
    pub(super) is_moving: bool,
    pub(super) world: World,
}

impl Case {
    /// The mix and its objective, for people.
    pub(super) fn name(&self) -> String {
        format!("{} at {}x", self.mix, self.slo_factor)
    }

    /// What is asked for before any factor.
    pub(super) fn rate_per_s(&self) -> f64 {
        self.world.models.iter().map(|model| model.load.mean_per_s()).sum()
    }
}

/// The most load that one policy carries.
#[derive(Clone, Copy, Debug, Default)]
struct Carried {
    rate_per_s: f64,
    /// At that load, the lowest share in time of any model.
    worst: f64,
}

/// What is carried by policy, in the order of `ALL`.
#[derive(Clone, Debug)]
pub(super) struct MostLoad(Vec<Carried>);

impl MostLoad {
    /// Searches every policy's on every case.
    pub(super) fn search(cases: &[Case]) -> Result<Vec<Self>> {
        let mut jobs: Vec<(usize, usize)> = (0..cases.len())
            .flat_map(|case| (0..ALL.len()).map(move |policy| (case, policy)))
            .collect();
        // The longest first, so that no core waits long for the last one.
        jobs.sort_by_key(|&(case, _)| std::cmp::Reverse(cases[case].world.length));
        let found = on_all_cores(&jobs, |&(case, policy)| {
            let (case, known) = (&cases[case], &ALL[policy]);
            let carried = search(case, known)?;
            let rate_per_s = carried.rate_per_s;
            progress::note(format!("{}: {} carries {rate_per_s:.0}/s", case.name(), known.name));
            Ok(carried)
        })?;
        let mut all = vec![vec![Carried::default(); ALL.len()]; cases.len()];
        for (&(case, policy), carried) in jobs.iter().zip(found) {
            all[case][policy] = carried;
        }
        Ok(all.into_iter().map(Self).collect())
    }

    /// What Weft carries.
    pub(super) fn own(&self) -> f64 {
        self.best(|known| known.name == OWN)
    }

    fn best(&self, counts: impl Fn(&KnownPolicy) -> bool) -> f64 {
        let counted = ALL.iter().zip(&self.0).filter(|(known, _)| counts(known));
        counted.map(|(_, carried)| carried.rate_per_s).fold(0.0, f64::max)
    }

    /// At the most load of Weft, the lowest share in time of any model.
    fn own_worst(&self) -> f64 {
        let own = ALL.iter().zip(&self.0).find(|(known, _)| known.name == OWN);
        own.map_or(0.0, |(_, carried)| carried.worst)
    }

    /// Weft's in relation to the best that shares time alone or space by fixed partitions.
    fn to_fixed(&self) -> f64 {
        let best =
            self.best(|known| matches!(known.sharing, Sharing::TimeOnly | Sharing::StaticSpatial));
        self.own() / best
    }

    /// Weft's in relation to the best of all others.
    fn to_any(&self) -> f64 {
        self.own() / self.best(|known| known.name != OWN)
    }
}

fn search(case: &Case, known: &KnownPolicy) -> Result<Carried> {
    let make = |world: &World| -> Box<dyn Policy> { known.make(world.served_device()) };
    let capacity = capacity(&case.world, &make, TARGET).map_err(|violation| {
        anyhow!("{}: policy {} broke a rule: {violation:?}", case.name(), known.name)
    })?;
    let shares = capacity.outcome.models.iter().map(|model| model.attainment());
    // Where no load is carried, there is no outcome to look at.
    let worst = shares.min_by(f64::total_cmp).unwrap_or_default();
    Ok(Carried { rate_per_s: capacity.factor * case.rate_per_s(), worst })
}

/// Mixes as rows, policies as columns, and how Weft compares.
pub(super) fn table(cases: &[Case], found: &[MostLoad]) -> Table {
    let policies = ALL.iter().map(|known| known.name);
    let compared = ["to fixed", "held", "to any", "held", "worst model %"];
    let mut table = Table::new(["mix", "slo"].into_iter().chain(policies).chain(compared));
    for (case, most) in cases.iter().zip(found) {
        let place = [case.mix.to_string(), format!("{}x", case.slo_factor)];
        let rates = most.0.iter().map(|carried| format!("{:.0}", carried.rate_per_s));
        let (to_fixed, to_any) = (most.to_fixed(), most.to_any());
        let compared = [
            format!("{to_fixed:.2}"),
            held(to_fixed >= LEAST_TO_FIXED),
            format!("{to_any:.2}"),
            held(to_any >= LEAST_TO_ANY),
            format!("{:.1}", most.own_worst() * 100.0),
        ];
        table.row(place.into_iter().chain(rates).chain(compared));
    }
    table
}

/// The same for machines.
pub(super) fn json(cases: &[Case], found: &[MostLoad]) -> Json {
    let case = |(case, most): (&Case, &MostLoad)| {
        let by_policy = |number: fn(&Carried) -> f64| -> Map<String, Json> {
            let all = ALL.iter().zip(&most.0);
            all.map(|(known, carried)| (known.name.to_string(), json!(number(carried)))).collect()
        };
        json!({
            "mix": case.mix,
            "slo_factor": case.slo_factor,
            "seconds": case.world.length.seconds(),
            "rate_per_s": by_policy(|carried| carried.rate_per_s),
            "attainment_of_the_worst_model": by_policy(|carried| carried.worst),
            "to_fixed": most.to_fixed(),
            "to_any": most.to_any(),
            "holds": most.to_fixed() >= LEAST_TO_FIXED && most.to_any() >= LEAST_TO_ANY,
        })
    };
    cases.iter().zip(found).map(case).collect()
}

#[cfg(test)]
mod tests {
    use super::super::mixes;
    use super::*;

    /// What a case carries with these policies; the others carry nothing.
    fn most(rates: &[(&str, f64)]) -> MostLoad {
        assert!(rates.iter().all(|(name, _)| ALL.iter().any(|known| known.name == *name)));
        let of = |known: &KnownPolicy| {
            let rate = rates.iter().find(|(name, _)| *name == known.name).map(|(_, rate)| *rate);
            Carried { rate_per_s: rate.unwrap_or_default(), worst: 0.95 }
        };
        MostLoad(ALL.iter().map(of).collect())
    }

    fn row(rates: &[(&str, f64)]) -> Vec<String> {
        let mix = &mixes::ALL[0];
        let world = mix.world(&mixes::profiles(None).unwrap(), 5.0).unwrap();
        let case = Case { mix: mix.name, slo_factor: 5.0, is_moving: false, world };
        let text = table(&[case], &[most(rates)]).render();
        let cells = text.lines().last().unwrap().split_whitespace();
        cells.skip(2 + ALL.len()).map(str::to_string).collect()
    }

    #[test]
    fn weft_is_compared_with_what_is_fixed_and_with_everything() {
        let found = most(&[
            ("round-robin", 900.0),
            ("clockwork", 1000.0),
            ("knee-partitions", 2000.0),
            ("gpulets", 4000.0),
            ("weft", 3000.0),
        ]);
        assert_eq!((found.own(), found.to_fixed(), found.to_any()), (3000.0, 1.5, 0.75));
    }

    #[test]
    fn promises_are_held_from_their_limits_on() {
        let row_of = |weft: f64, gpulets: f64| {
            row(&[("clockwork", 1000.0), ("gpulets", gpulets), ("weft", weft)])
        };
        assert_eq!(row_of(1500.0, 1530.0), ["1.50", "yes", "0.98", "yes", "95.0"]);
        assert_eq!(row_of(1490.0, 1600.0), ["1.49", "NO", "0.93", "NO", "95.0"]);
        assert_eq!(row_of(1500.0, 1700.0), ["1.50", "yes", "0.88", "NO", "95.0"]);
    }
}
