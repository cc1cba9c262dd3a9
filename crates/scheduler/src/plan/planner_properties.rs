//! What must hold of every plan, on random demands.

use std::time::Instant;

use crate::plan::demand::{DeviceFacts, ModelDemand};
use crate::plan::dice::Dice;
use crate::plan::exhaustive::weighted_rate;
use crate::plan::partition_plan::ShortfallReason;
use crate::plan::planner::{Effort, plan_partitions};
use crate::plan::random_demands::{Kind, RandomDemands};

fn draw(dice: &mut Dice, most_models: usize, loads: &[f64]) -> RandomDemands {
    let kind = Kind {
        models: 1 + dice.below(most_models),
        units: 1 + dice.below(12) as u32,
        batches: vec![1, 2, 4, 8, 16],
        load: loads[dice.below(loads.len())],
    };
    RandomDemands::draw(&kind, dice)
}

#[test]
fn every_plan_keeps_every_invariant_whatever_is_asked() {
    let mut dice = Dice::new(11);
    for instance in 0..40 {
        let mut drawn = draw(&mut dice, 12, &[0.1, 0.5, 1.5, 20.0]);
        drawn.spoil(&mut dice);
        let demands = drawn.demands();
        let plan = plan_partitions(&demands, &drawn.facts, Effort::Thorough);
        assert_eq!(plan.check(&demands, &drawn.facts), [], "instance {instance}");
        assert_eq!(
            plan,
            plan_partitions(&demands, &drawn.facts, Effort::Thorough),
            "instance {instance}"
        );
        for shortfall in &plan.shortfalls {
            let slo = demands[shortfall.model.index()].slo.unwrap();
            if let ShortfallReason::SloTooTight { least_latency } = shortfall.reason {
                assert!(least_latency >= slo.latency && shortfall.given_per_s == 0.0);
            }
        }
    }
}

#[test]
fn a_device_without_units_lacks_units() {
    let kind = Kind { models: 2, units: 4, batches: vec![1, 2], load: 0.1 };
    let mut drawn = RandomDemands::draw(&kind, &mut Dice::new(9));
    drawn.facts.units = 0;
    let demands = drawn.demands();
    let plan = plan_partitions(&demands, &drawn.facts, Effort::Quick);
    assert_eq!(plan.check(&demands, &drawn.facts), []);
    let lacks = |reason| matches!(reason, ShortfallReason::NotEnoughUnits { .. });
    assert_eq!(plan.shortfalls.len(), 2);
    assert!(plan.shortfalls.iter().all(|shortfall| lacks(shortfall.reason)));
}

#[test]
fn dozens_of_quiet_models_share_partitions() {
    let mut dice = Dice::new(15);
    let kind = Kind { models: 100, units: 4, batches: vec![1, 2, 4, 8, 16], load: 0.002 };
    let drawn = RandomDemands::draw(&kind, &mut dice);
    let demands = drawn.demands();
    let plan = plan_partitions(&demands, &drawn.facts, Effort::Thorough);
    assert_eq!(plan.check(&demands, &drawn.facts), []);
    let most = plan.partitions.iter().map(|partition| partition.shares.len()).max();
    assert!(most > Some(30), "{most:?}");
}

#[test]
fn more_units_never_serve_less() {
    let mut dice = Dice::new(12);
    for instance in 0..10 {
        let drawn = draw(&mut dice, 10, &[0.3, 1.0, 3.0]);
        let demands = drawn.demands();
        let mut before = 0.0;
        for units in 0..=drawn.facts.units {
            let facts = DeviceFacts { units, ..drawn.facts };
            let now = weighted_rate(&plan_partitions(&demands, &facts, Effort::Thorough), &demands);
            assert!(
                now >= before * (1.0 - 1e-9),
                "instance {instance} at {units}: {now} after {before}"
            );
            before = now;
        }
    }
}

#[test]
fn what_fits_still_fits_when_all_rates_are_lower() {
    let mut dice = Dice::new(13);
    let mut fitting = 0;
    for instance in 0..40 {
        let mut drawn = draw(&mut dice, 8, &[0.05, 0.1, 0.2]);
        if !plan_partitions(&drawn.demands(), &drawn.facts, Effort::Thorough).shortfalls.is_empty()
        {
            continue;
        }
        fitting += 1;
        for factor in [0.9, 0.7, 0.3, 0.01] {
            drawn.scale_rates(factor);
            let plan = plan_partitions(&drawn.demands(), &drawn.facts, Effort::Thorough);
            assert_eq!(plan.shortfalls, [], "instance {instance} times {factor}");
        }
    }
    assert!(fitting > 8, "only {fitting} instances fit at all");
}

#[test]
fn the_units_that_are_said_to_be_missing_make_it_fit_but_for_a_rest() {
    let mut dice = Dice::new(14);
    let mut short = 0;
    for instance in 0..40 {
        let load = 0.2 + 0.8 * dice.share();
        let kind = Kind { models: 1, units: 6, batches: vec![1, 2, 4, 8], load };
        let mut drawn = RandomDemands::draw(&kind, &mut dice);
        drawn.facts.memory_bytes = u64::MAX;
        let demands = drawn.demands();
        let plan = plan_partitions(&demands, &drawn.facts, Effort::Thorough);
        let Some(shortfall) = plan.shortfalls.first() else {
            continue;
        };
        let ShortfallReason::NotEnoughUnits { units_missing } = shortfall.reason else {
            panic!("instance {instance}: {shortfall:?}");
        };
        if units_missing > 20 {
            continue;
        }
        short += 1;
        let facts = DeviceFacts { units: drawn.facts.units + units_missing, ..drawn.facts };
        let given = weighted_rate(&plan_partitions(&demands, &facts, Effort::Thorough), &demands);
        let asked = demands[0].weight * demands[0].rate_per_s;
        assert!(given >= 0.97 * asked, "instance {instance}: {given} of {asked}");
    }
    assert!(short > 5, "only {short} instances fall short");
}

#[test]
fn what_is_missing_of_memory_is_said_to_the_byte() {
    let mut dice = Dice::new(15);
    let kind = Kind { models: 2, units: 4, batches: vec![1, 4], load: 0.01 };
    let mut drawn = RandomDemands::draw(&kind, &mut dice);
    drawn.facts.memory_bytes = u64::MAX;
    let sizes: Vec<u64> =
        drawn.demands().iter().map(|demand| demand.profile.memory_bytes).collect();
    assert_eq!(plan_partitions(&drawn.demands(), &drawn.facts, Effort::Thorough).shortfalls, []);
    drawn.facts.memory_bytes = sizes.iter().sum::<u64>() - 3;
    let plan = plan_partitions(&drawn.demands(), &drawn.facts, Effort::Thorough);
    let reasons: Vec<ShortfallReason> =
        plan.shortfalls.iter().map(|shortfall| shortfall.reason).collect();
    assert_eq!(reasons, [ShortfallReason::NotEnoughMemory { bytes_missing: 3 }]);
}

#[test]
fn models_that_ask_for_little_share_and_the_rest_is_best_effort() {
    let mut dice = Dice::new(16);
    let kind = Kind { models: 6, units: 12, batches: vec![1, 2, 4], load: 0.002 };
    let mut drawn = RandomDemands::draw(&kind, &mut dice);
    drawn.facts.memory_bytes = u64::MAX;
    let plan = plan_partitions(&drawn.demands(), &drawn.facts, Effort::Thorough);
    assert_eq!(plan.shortfalls, []);
    assert!(plan.partitions.iter().any(|partition| partition.shares.len() > 1), "{plan:?}");
    assert!(plan.best_effort_units > 0);
}

/// A hundred models whose rates fall as one over their rank, asking for a share of sixteen units.
fn hundred_models(load: f64) -> RandomDemands {
    let kind = Kind { models: 100, units: 16, batches: vec![1, 2, 4, 8, 16, 32], load };
    let mut drawn = RandomDemands::draw(&kind, &mut Dice::new(17));
    drawn.facts.memory_bytes = u64::MAX;
    drawn.rank_rates();
    drawn
}

/// How long planning takes, in milliseconds, and the share of the weighted rate that is served then.
fn timed(demands: &[ModelDemand<'_>], facts: &DeviceFacts) -> (f64, f64) {
    let start = Instant::now();
    let plan = plan_partitions(demands, facts, Effort::Thorough);
    let elapsed_ms = start.elapsed().as_secs_f64() * 1e3;
    assert_eq!(plan.check(demands, facts), []);
    let asked: f64 = demands.iter().map(|demand| demand.weight * demand.rate_per_s).sum();
    (elapsed_ms, weighted_rate(&plan, demands) / asked)
}

#[test]
fn a_hundred_models_are_planned_while_serving() {
    let drawn = hundred_models(0.5);
    let (elapsed_ms, _) = timed(&drawn.demands(), &drawn.facts);
    assert!(elapsed_ms < 2_000.0, "{elapsed_ms} ms without optimisation");
}

#[test]
#[ignore = "prints times, which only mean something with optimisation"]
#[allow(clippy::print_stdout)]
fn time_of_a_hundred_models() {
    for load in [0.02, 0.1, 0.3, 0.6, 1.0, 3.0] {
        let drawn = hundred_models(load);
        let demands = drawn.demands();
        let mut times: Vec<f64> = (0..15).map(|_| timed(&demands, &drawn.facts).0).collect();
        times.sort_by(f64::total_cmp);
        let served = timed(&demands, &drawn.facts).1;
        println!(
            "load {load}: median {:.2} ms, longest {:.2} ms, {served:.3} served",
            times[7], times[14]
        );
    }
}
