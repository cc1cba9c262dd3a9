//! Stragglers: a member of a group whose requests come late does not hold the others up.

use std::sync::Arc;

use weft_scheduler::plan::Slo;
use weft_scheduler::policies::Weft;
use weft_scheduler::{GroupId, ModelId, Policy, Profile, ProfilePoint, Span, Time};
use weft_simulator::{Lateness, Load, ModelOutcome, Outcome, SimulatedModel, World, run};

const TENANTS: usize = 32;
const SLO_US: f64 = 5000.0;
/// What such a group carries with 99 of a hundred requests in time.
const CARRIED_PER_S: f64 = 8500.0;

/// Tenants on one unit, of which the first few are late; a batch takes as long as one request and 6 % of that for each
/// further one.
fn world(load: f64, stragglers: usize, late: Option<Lateness>, seed: u64) -> World {
    let point = |batch: u32| {
        let latency = Span::from_us(1000.0 * (0.94 + 0.06 * f64::from(batch)));
        ProfilePoint { batch, units: 1, latency, dram_bytes: 0.0 }
    };
    let points = [1, 2, 4, 8, 16, 32].map(point);
    let profile = Arc::new(Profile::new(&points, 1 << 20).unwrap());
    let model = |index: usize| SimulatedModel {
        name: format!("tenant {index}"),
        profile: profile.clone(),
        load: Load::Poisson { rate_per_s: load * CARRIED_PER_S / TENANTS as f64 },
        slo: Some(Slo { percentile: 0.99, latency: Span::from_us(SLO_US) }),
        weight: 1.0,
        priority: 0,
        group: Some(GroupId(0)),
        late: late.filter(|_| index < stragglers),
    };
    World {
        models: (0..TENANTS).map(model).collect(),
        units: 1,
        bandwidth_bytes_per_s: 1e12,
        memory_bytes: 1 << 30,
        can_interrupt: false,
        preparation: Span::from_us(100.0),
        preparation_per_model: Span::from_us(1000.0),
        planning: Span::from_us(100_000.0),
        mixes: Vec::new(),
        noise: 0.03,
        length: Span::from_s(20.0),
        seed,
    }
}

/// The same world without the first few.
fn without(mut world: World, stragglers: usize) -> World {
    world.models[..stragglers]
        .iter_mut()
        .for_each(|model| model.load = Load::Poisson { rate_per_s: 0.0 });
    world
}

fn evicting(world: &World) -> Outcome {
    run(world, &mut Weft::new(world.served_device())).unwrap()
}

fn keeping(world: &World) -> Outcome {
    run(world, &mut Weft::new(world.served_device()).keeping_stragglers()).unwrap()
}

/// What became of some tenants together.
fn together(models: &[ModelOutcome]) -> ModelOutcome {
    let mut together = ModelOutcome::default();
    models.iter().for_each(|model| together.merge(model));
    together
}

const LATE: Lateness = Lateness { share: 1.0, spent: 0.4 };

#[test]
fn a_straggler_leaves_the_others_as_they_are_without_it() {
    for (load, seed) in [(0.8, 1), (0.9, 2), (0.95, 3)] {
        let world = world(load, 1, Some(LATE), seed);
        let [gone, kept, evicted] =
            [keeping(&without(world.clone(), 1)), keeping(&world), evicting(&world)];
        let others = [&gone, &kept, &evicted].map(|outcome| together(&outcome.models[1..]));
        let [alone_us, kept_us, evicted_us] = others.each_ref().map(|it| it.latency(0.99).us());
        let place = format!("{load} {seed}: {alone_us} {kept_us} {evicted_us}");
        assert!(evicted_us <= 1.03 * alone_us && kept_us >= 1.07 * alone_us, "{place}");
        let [alone, kept_in_time, in_time] = others.each_ref().map(ModelOutcome::attainment);
        assert!(in_time >= alone - 0.002 && in_time >= kept_in_time, "{place}");
        assert!((2..=20).contains(&evicted.models[0].evictions), "it is let back now and then");
        assert_eq!(others[2].evictions, 0, "{place}");
        assert!(evicted.promises_kept() >= 0.99, "{place}");
    }
}

#[test]
fn several_stragglers_are_evicted_and_no_one_else() {
    let world = world(0.9, 4, Some(LATE), 1);
    let (kept, evicted) = (keeping(&world), evicting(&world));
    let others = [&kept, &evicted].map(|outcome| together(&outcome.models[4..]));
    let [kept_us, evicted_us] = others.each_ref().map(|it| it.latency(0.99).us());
    assert!(evicted_us <= 0.9 * kept_us, "{evicted_us} {kept_us}");
    assert!(evicted.models[..4].iter().all(|model| model.evictions > 0));
    assert_eq!(others[1].evictions, 0);
}

#[test]
fn who_does_no_harm_is_not_evicted() {
    let evictions = |world: &World| together(&evicting(world).models).evictions;
    // There is time for requests that come late.
    assert_eq!(evictions(&world(0.3, 1, Some(LATE), 1)), 0);
    // All are late, and nobody more than the others.
    assert_eq!(evictions(&world(0.7, TENANTS, Some(LATE), 1)), 0);
    // All miss.
    assert_eq!(evictions(&world(2.0, 0, None, 1)), 0);
    // One sends much.
    let mut flood = world(0.9, 0, None, 1);
    flood.models[0].load = flood.models[0].load.scaled(10.0);
    assert_eq!(evictions(&flood), 0);
}

#[test]
fn who_is_late_no_more_is_let_back() {
    let mut world = world(0.9, 1, Some(LATE), 1);
    world.length = Span::from_s(6.0);
    let mut policy = Weft::new(world.served_device());
    assert!(run(&world, &mut policy).unwrap().models[0].evictions > 0);
    let far = Time::START + Span::from_s(120.0);
    assert!(!policy.is_evicted(ModelId(0), far));
}

#[test]
#[ignore = "prints figures"]
#[allow(clippy::print_stdout)]
fn figures() {
    for stragglers in [1, 4] {
        for load in [0.3, 0.5, 0.7, 0.8, 0.9, 0.95] {
            for spent in [0.2, 0.3, 0.4, 0.5, 0.6, 0.7] {
                let world = world(load, stragglers, Some(Lateness { share: 1.0, spent }), 1);
                let outcomes = [
                    evicting(&without(world.clone(), stragglers)),
                    keeping(&world),
                    evicting(&world),
                ];
                let others = outcomes.each_ref().map(|it| together(&it.models[stragglers..]));
                let own = outcomes.each_ref().map(|it| together(&it.models[..stragglers]));
                println!(
                    "{stragglers} late by {spent} at {load}: p99 {:.0?} us, in time {:.4?}, own {:.4?}, evictions {:?} {:?}",
                    others.each_ref().map(|it| it.latency(0.99).us()),
                    others.each_ref().map(ModelOutcome::attainment),
                    own.each_ref().map(ModelOutcome::attainment),
                    own.each_ref().map(|it| it.evictions),
                    others.each_ref().map(|it| it.evictions),
                );
            }
        }
    }
}
