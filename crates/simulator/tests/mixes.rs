//! Mixes: what comes together again and again is recognised, regulated and launched as one, and promises hold.

use std::ops::Range;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use weft_scheduler::plan::Slo;
use weft_scheduler::policies::named;
use weft_scheduler::{ModelId, Policy, Profile, ProfilePoint, Span, Time};
use weft_simulator::{Load, Outcome, SimulatedMix, SimulatedModel, World, run};

const UNITS: u32 = 16;

/// What each of three models takes on all units, and what they take together by the schedule that is found for them.
const ALONE_US: [f64; 3] = [420.0, 610.0, 250.0];
const TOGETHER_US: f64 = 800.0;

/// Half the units take 1.6 times as long.
fn profile(us: f64) -> Arc<Profile> {
    let point = |units: u32| {
        let latency = Span::from_us(us * (f64::from(UNITS) / f64::from(units)).powf(0.68));
        ProfilePoint { batch: 1, units, latency, dram_bytes: 0.0 }
    };
    Arc::new(Profile::new(&[1, 2, 4, 8, 16].map(point), 1 << 20).unwrap())
}

/// A model whose requests come at these times, in microseconds.
fn model(us: f64, mut times: Vec<f64>, slo_us: f64) -> SimulatedModel {
    times.sort_by(f64::total_cmp);
    let times: Arc<[Time]> = times.into_iter().map(|us| Time::START + Span::from_us(us)).collect();
    SimulatedModel {
        name: "model".into(),
        profile: profile(us),
        load: Load::Trace { times, multiplicity: 1.0 },
        slo: Some(Slo { percentile: 0.99, latency: Span::from_us(slo_us) }),
        weight: 1.0,
        priority: 0,
        group: None,
        late: None,
    }
}

/// A world in which requests of the three models come at these times, in microseconds.
fn world(times_us: [Vec<f64>; 3], slo_us: f64, noise: f64, seed: u64) -> World {
    let models = ALONE_US.into_iter().zip(times_us).map(|(us, times)| model(us, times, slo_us));
    World {
        models: models.collect(),
        units: UNITS,
        bandwidth_bytes_per_s: 1e12,
        memory_bytes: 1 << 30,
        can_interrupt: false,
        preparation: Span::from_us(100.0),
        preparation_per_model: Span::from_us(1000.0),
        planning: Span::from_us(100_000.0),
        mixes: vec![SimulatedMix {
            models: (0..3).map(|model| (ModelId(model), 1)).collect(),
            latency: Span::from_us(TOGETHER_US),
            regulation: Span::from_s(1.0),
        }],
        noise,
        length: Span::from_s(10.0),
        seed,
    }
}

/// The same with one model more, which is asked so often independently of all others.
fn beside(world: &World, us: f64, per_s: f64, slo_us: f64) -> World {
    let mut world = world.clone();
    let seed = world.seed + 100 * world.models.len() as u64;
    world.models.push(model(us, independent(per_s, 0.0..9.9e6, seed), slo_us));
    world
}

/// The same without any mix that gains something.
fn without_mixes(world: &World) -> World {
    World { mixes: Vec::new(), ..world.clone() }
}

/// Rounds at a period, whose requests come within a time, in any order.
fn rounds(period_us: f64, within_us: f64, seconds: f64, seed: u64) -> [Vec<f64>; 3] {
    let mut random = SmallRng::seed_from_u64(seed);
    let count = (seconds * 1e6 / period_us) as usize;
    std::array::from_fn(|_| {
        let at = |round: usize| round as f64 * period_us + random.random::<f64>() * within_us;
        (0..count).map(at).collect()
    })
}

/// Independent requests at a rate.
fn independent(per_s: f64, between_us: Range<f64>, seed: u64) -> Vec<f64> {
    let mut random = SmallRng::seed_from_u64(seed);
    let next = |at_us: &f64| Some(at_us - (1.0 - random.random::<f64>()).ln() * 1e6 / per_s);
    let times = std::iter::successors(Some(between_us.start), next);
    times.skip(1).take_while(|at_us| *at_us < between_us.end).collect()
}

fn weft(world: &World) -> Box<dyn Policy> {
    named("weft").unwrap().make(world.served_device())
}

fn play(world: &World) -> Outcome {
    run(world, &mut *weft(world)).unwrap()
}

/// The latest answers of a round, nearly always.
fn last_answered_us(outcome: &Outcome) -> f64 {
    let models = outcome.models.iter();
    models.map(|model| model.latency(0.9).us()).fold(0.0, f64::max)
}

#[test]
fn rounds_that_recur_run_as_one_launch_where_objectives_need_it() {
    // One after another the three take 1280 us, and no partition of half the units answers the second in time.
    for per_s in [200.0, 800.0] {
        let world = world(rounds(1e6 / per_s, 40.0, 10.0, 2), 1000.0, 0.03, 2);
        let (mixed, apart) = (play(&world), play(&without_mixes(&world)));
        assert_eq!(apart.mixed_launches, 0);
        assert!(apart.attainment() < 0.7, "{}", apart.attainment());
        // All rounds but those of the first two seconds, in which another layout is tried and the mix is regulated.
        let share = mixed.mixed_launches as f64 / (10.0 * per_s);
        assert!(share > 0.7, "{per_s}: {share}");
        assert!(mixed.attainment() > 0.9, "{per_s}: {}", mixed.attainment());
        assert!(mixed.promises_kept() > 0.99, "{per_s}: {}", mixed.promises_kept());
    }
}

/// The share of the requests of some models that is answered in time.
fn in_time(outcome: &Outcome, models: Range<usize>) -> f64 {
    let shares = outcome.models[models.clone()].iter().map(|model| model.attainment());
    shares.sum::<f64>() / models.len() as f64
}

#[test]
fn rounds_among_others_run_as_one_launch_too() {
    // One other or two, a tenth as often as rounds to ten times.
    for (rounds_per_s, others) in
        [(200.0, &[20.0][..]), (200.0, &[2000.0]), (500.0, &[300.0, 700.0]), (800.0, &[800.0])]
    {
        let world = world(rounds(1e6 / rounds_per_s, 40.0, 10.0, 2), 1000.0, 0.03, 2);
        let world = others.iter().fold(world, |world, &per_s| beside(&world, 100.0, per_s, 2000.0));
        let (mixed, apart) = (play(&world), play(&without_mixes(&world)));
        let (with, without) = (in_time(&mixed, 0..3), in_time(&apart, 0..3));
        assert!(without < 0.7 && with > 0.88, "{rounds_per_s} {others:?}: {with} {without}");
        let share = mixed.mixed_launches as f64 / (10.0 * rounds_per_s);
        assert!(share > 0.7, "{rounds_per_s} {others:?}: {share}");
        let of_others = in_time(&mixed, 3..3 + others.len());
        assert!(of_others > 0.99, "{rounds_per_s} {others:?}: {of_others}");
        let kept = mixed.promises_kept();
        assert!(kept > 0.99, "{rounds_per_s} {others:?}: {kept}");
    }
}

#[test]
fn layouts_are_rehearsed_with_rounds_as_they_come() {
    // No mix gains anything. Independent requests of these rates would want one partition of all units, on which the third of
    // a round is late.
    let world = without_mixes(&world(rounds(1250.0, 40.0, 10.0, 2), 1200.0, 0.03, 2));
    let outcome = play(&world);
    assert_eq!(outcome.mixed_launches, 0);
    assert!(outcome.attainment() > 0.98, "{}", outcome.attainment());
}

#[test]
fn a_mix_is_dropped_when_something_else_comes() {
    let mut times = rounds(2500.0, 40.0, 5.0, 3);
    for (seed, times) in (3..).zip(&mut times) {
        times.extend(independent(400.0, 5e6..9.9e6, seed));
    }
    let world = world(times, 1000.0, 0.03, 3);
    let outcome = play(&world);
    // Three seconds of rounds or less, and few that happen to wait together before it is dropped.
    assert!((900..1300).contains(&outcome.mixed_launches), "{}", outcome.mixed_launches);
    assert!(outcome.attainment() > play(&without_mixes(&world)).attainment());
    assert!(outcome.promises_kept() > 0.985, "{}", outcome.promises_kept());
}

#[test]
fn a_mix_is_dropped_when_its_rounds_stop_while_others_go_on() {
    // Four seconds of rounds, six of others alone, and five of rounds.
    let [before, after] = [4.0, 5.0].map(|seconds| rounds(5000.0, 40.0, seconds, 3));
    let times = std::array::from_fn(|model| {
        let after = after[model].iter().map(|at_us| at_us + 10e6);
        before[model].iter().copied().chain(after).collect()
    });
    let mut world = beside(&world(times, 1000.0, 0.03, 3), 100.0, 100.0, 2000.0);
    world.models[3] = model(100.0, independent(100.0, 0.0..14.9e6, 3), 2000.0);
    world.length = Span::from_s(15.0);
    // Each time it is recognised and regulated for two seconds or a bit more.
    let launches = play(&world).mixed_launches;
    assert!((800..1000).contains(&launches), "{launches}");
}

#[test]
fn rounds_that_change_to_another_set_have_another_mix() {
    // The third model is asked with the others for five seconds, and by itself for as long; or the other way around.
    for is_first in [true, false] {
        let mut times = rounds(5000.0, 40.0, 10.0, 3);
        times[2].retain(|&at_us| (at_us < 5e6) == is_first);
        let alone_us = if is_first { 5e6..9.9e6 } else { 0.0..5e6 };
        times[2].extend(independent(100.0, alone_us, 3));
        let mut world = world(times, 1000.0, 0.03, 3);
        let models = (0..2).map(|model| (ModelId(model), 1)).collect();
        let latency = Span::from_us(700.0);
        world.mixes.push(SimulatedMix { models, latency, regulation: Span::from_s(1.0) });
        let outcome = play(&world);
        // Of each about three seconds.
        assert!((1000..1300).contains(&outcome.mixed_launches), "{}", outcome.mixed_launches);
        assert!(outcome.promises_kept() > 0.985, "{}", outcome.promises_kept());
    }
}

#[test]
fn promises_hold_whatever_comes_between_rounds() {
    for seed in 0..12 {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut draw = |from: f64, to: f64| from + random.random::<f64>() * (to - from);
        let (period_us, within_us) = (draw(1100.0, 6000.0), draw(0.0, 400.0));
        let (slo_us, noise) = (draw(1500.0, 8000.0), draw(0.0, 0.1));
        let mut times = rounds(period_us, within_us, 10.0, seed);
        // Now and then one comes that is of no round.
        for times in &mut times {
            (0..100).for_each(|_| times.push(draw(0.0, 9.9e6)));
        }
        let world = world(times, slo_us, noise, seed);
        let others_per_s = draw(0.1, 3.0) * 1e6 / period_us;
        let world = match seed % 2 {
            0 => world,
            _ => beside(&world, 100.0, others_per_s, draw(1000.0, 8000.0)),
        };
        let (mixed, apart) = (play(&world), play(&without_mixes(&world)));
        let kept = mixed.promises_kept();
        assert!(kept >= 0.99, "{seed}: {kept}, {} apart", apart.promises_kept());
        let (mixed, apart) = (mixed.attainment(), apart.attainment());
        assert!(mixed >= apart - 0.01, "{seed}: {mixed} {apart}");
    }
}

#[test]
#[ignore = "prints figures"]
#[allow(clippy::print_stdout)]
fn figures() {
    for slo_us in [900.0, 1000.0, 1100.0, 1200.0, 1500.0, 2000.0] {
        for per_s in [200.0, 500.0, 800.0, 1000.0] {
            let world = world(rounds(1e6 / per_s, 40.0, 10.0, 2), slo_us, 0.03, 2);
            let outcomes = [play(&without_mixes(&world)), play(&world)];
            let last_us = outcomes.each_ref().map(last_answered_us);
            let in_time = outcomes.each_ref().map(|outcome| 100.0 * outcome.attainment());
            println!(
                "objective {slo_us} us, {per_s} rounds per second, apart and as a mix: in time {in_time:.2?} %, last answers {last_us:.0?} us, {} launches of the mix",
                outcomes[1].mixed_launches
            );
        }
    }
}

#[test]
#[ignore = "prints figures"]
#[allow(clippy::print_stdout)]
fn figures_with_others() {
    for (rounds_per_s, us, others_per_s) in [
        (200.0, 100.0, 20.0),
        (200.0, 100.0, 200.0),
        (200.0, 100.0, 2000.0),
        (500.0, 100.0, 50.0),
        (500.0, 100.0, 500.0),
        (500.0, 100.0, 2000.0),
        (500.0, 300.0, 500.0),
        (800.0, 100.0, 80.0),
        (800.0, 100.0, 800.0),
    ] {
        for slo_us in [1000.0, 1200.0] {
            let world = world(rounds(1e6 / rounds_per_s, 40.0, 10.0, 2), slo_us, 0.03, 2);
            let world = beside(&world, us, others_per_s, 2000.0);
            let outcomes = [play(&without_mixes(&world)), play(&world)];
            let of = |models: Range<usize>| {
                outcomes.each_ref().map(|outcome| 100.0 * in_time(outcome, models.clone()))
            };
            println!(
                "objective {slo_us} us, {rounds_per_s} rounds per second beside {others_per_s} of {us} us, apart and with the mix: in time {:.2?} %, others {:.2?} %, {} launches of the mix, promises {:.2} %",
                of(0..3),
                of(3..4),
                outcomes[1].mixed_launches,
                100.0 * outcomes[1].promises_kept(),
            );
        }
    }
}
