//! Every policy in random worlds. `WEFT_SIMULATIONS=N` runs more of them; `WEFT_SEED=S` runs one again that failed.

mod witness;
mod worlds;

use std::collections::BTreeMap;
use std::env;
use std::ops::Range;

use weft_scheduler::policies::{self, ALL, KnownPolicy};
use weft_scheduler::{Span, Time};
use weft_simulator::{Circumstances, Outcome, World, run_under};

use witness::Witness;

/// How many worlds each test runs, unless it is said otherwise.
const SIMULATIONS: u64 = 24;

/// Policies that predict nothing at the door, and so promise nothing.
const WITHOUT_PROMISES: [&str; 2] = ["round-robin", "clockwork"];

/// So many promises may be broken in any world: what a policy has to see before it knows how durations stray.
const A_FEW: f64 = 10.0;

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().expect("a whole number"))
}

fn seeds() -> Range<u64> {
    match number("WEFT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("WEFT_SIMULATIONS").unwrap_or(SIMULATIONS),
    }
}

/// What to say of a failure: enough to see it again.
fn place(seed: u64, policy: &KnownPolicy) -> String {
    format!("{} in the world of WEFT_SEED={seed}", policy.name)
}

fn play<'a>(
    (world, circumstances): (&'a World, &Circumstances),
    policy: &KnownPolicy,
    place: &str,
) -> (Outcome, Witness<'a>) {
    let mut witness = Witness::new(world);
    let mut policy = policy.make(world.served_device());
    let outcome = run_under(world, circumstances, &mut *policy, &mut witness)
        .unwrap_or_else(|violation| panic!("{place}: {violation:?}"));
    (outcome, witness)
}

#[test]
fn no_request_is_lost_or_answered_twice_and_units_have_one_owner() {
    for seed in seeds() {
        let world = worlds::any(seed);
        let circumstances = worlds::circumstances(seed);
        for policy in ALL {
            let place = place(seed, policy);
            let (outcome, witness) = play((&world, &circumstances), policy, &place);
            witness.agrees(&outcome, &place);
            for model in &outcome.models {
                let answered = model.in_time + model.late;
                assert_eq!(answered + model.refused + model.shed, model.arrived, "{place}");
                assert_eq!(model.latencies.count(), answered, "{place}");
            }
            let mut again = policy.make(world.served_device());
            let repeated = run_under(&world, &circumstances, &mut *again, &mut ());
            assert_eq!(repeated.as_ref(), Ok(&outcome), "{place}: the same seed, another outcome");
        }
    }
}

/// Of all that a policy accepts, 99 of a hundred are answered in time; in no world is it much less.
#[test]
fn promises_are_kept() {
    // By policy, over all worlds: accepted requests, and those of them that were answered in time.
    let mut totals: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for seed in seeds() {
        let world = worlds::with_objectives(seed);
        // Nobody knows beforehand what else will use the device.
        let circumstances = Circumstances { pauses_per_s: 0.0, ..worlds::circumstances(seed) };
        for policy in ALL.iter().filter(|policy| !WITHOUT_PROMISES.contains(&policy.name)) {
            let place = place(seed, policy);
            let (outcome, _) = play((&world, &circumstances), policy, &place);
            let total = totals.entry(policy.name).or_default();
            let all = outcome.total();
            let (accepted, kept) = (all.arrived - all.refused, outcome.promises_kept());
            total.0 += accepted;
            total.1 += all.in_time;
            let most_broken = A_FEW + accepted as f64 * 0.03;
            let is_kept = (accepted - all.in_time) as f64 <= most_broken;
            assert!(is_kept, "{place}: {kept:.4} of {accepted} promises kept");
        }
    }
    for (policy, (accepted, in_time)) in totals {
        let kept = in_time as f64 / accepted.max(1) as f64;
        assert!(kept >= 0.99, "{policy} kept {kept:.4} of {accepted} promises");
    }
}

#[test]
fn nobody_starves() {
    for seed in seeds() {
        let world = worlds::moderate(seed);
        let circumstances = worlds::circumstances(seed);
        for policy in ALL {
            let place = place(seed, policy);
            let (_, witness) = play((&world, &circumstances), policy, &place);
            let window = Span::from_s(2.0);
            witness.answers_all(Time::START, Time::START + world.length, window, &place);
        }
    }
}

/// Where durations are exact, so is what is predicted, whatever holds launches up.
#[test]
fn what_holds_launches_up_is_held_against_no_model() {
    let (pauses_per_s, pause) = (50.0, Span::from_us(3000.0));
    let circumstances = Circumstances { pauses_per_s, pause, ..Circumstances::default() };
    // Others never pause what runs.
    let policy = policies::named("weft").expect("it is there");
    for seed in seeds() {
        let world = worlds::exact(seed);
        let mut served = policy.make(world.served_device());
        let outcome = run_under(&world, &circumstances, &mut *served, &mut ());
        let place = place(seed, policy);
        outcome.unwrap_or_else(|violation| panic!("{place}: {violation:?}"));
        let error = served.prediction_error().expect("something has run");
        assert!(error.p95 < 1e-3, "{place}: {error:?}");
    }
}
