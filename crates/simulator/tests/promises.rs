//! Promises: what a lane accepts is answered in time, under every load, and it does not refuse what it could have served.

use std::sync::Arc;

use weft_scheduler::plan::Slo;
use weft_scheduler::policies::{equal_partitions, time_sharing};
use weft_scheduler::{FixedServing, ModelId, Policy, Profile, ProfilePoint, ServedDevice, Span};
use weft_simulator::{Load, Outcome, SimulatedModel, World, run};

const UNITS: u32 = 16;

/// One item alone on the device takes `us`; of that, `fixed` does not grow with the batch, and half gains from units.
fn profile(us: f64, fixed: f64) -> Arc<Profile> {
    let grid =
        [1u32, 4, 16].into_iter().flat_map(|batch| [1, 4, UNITS].map(|units| (batch, units)));
    let point = |(batch, units): (u32, u32)| {
        let items = fixed + (1.0 - fixed) * f64::from(batch);
        let spread = 0.5 + 0.5 * f64::from(UNITS) / f64::from(units);
        let latency = Span::from_us(us * items * spread);
        ProfilePoint { batch, units, latency, dram_bytes: 0.0 }
    };
    Arc::new(Profile::new(&grid.map(point).collect::<Vec<_>>(), 0).unwrap())
}

/// A kind of load.
#[derive(Clone, Copy, Debug)]
struct Kind {
    /// What all models together ask for, in relation to what they could get in batches of half their objective.
    load: f64,
    burstiness: f64,
    noise: f64,
}

/// Models of different sizes with tight and loose objectives, each with the same share of the load.
fn world(kind: Kind, seed: u64) -> World {
    // (one item in microseconds, what batches save of it, the objective in relation to it)
    let all = [
        (300.0, 0.8, 2.5),
        (900.0, 0.6, 5.0),
        (150.0, 0.9, 30.0),
        (1500.0, 0.5, 5.0),
        (500.0, 0.7, 10.0),
    ];
    let count = 1 + seed as usize % all.len();
    let model = |index: usize| {
        let (us, fixed, factor) = all[(index + seed as usize) % all.len()];
        let profile = profile(us, fixed);
        let latency = Span::from_us(us * factor);
        let fits = |batch: &u32| profile.latency(*batch, UNITS) * 2.0 <= latency;
        let batch = (1..=16).rev().find(fits).unwrap_or(1);
        let most_per_s = f64::from(batch) / profile.latency(batch, UNITS).seconds();
        let rate_per_s = kind.load * most_per_s / count as f64;
        SimulatedModel {
            name: format!("model {index}"),
            profile,
            load: Load::Gamma { rate_per_s, burstiness: kind.burstiness },
            slo: Some(Slo { percentile: 0.99, latency }),
            weight: 1.0,
            priority: 0,
            group: None,
            late: None,
        }
    };
    World {
        models: (0..count).map(model).collect(),
        units: UNITS,
        bandwidth_bytes_per_s: 4.8e12,
        memory_bytes: 1 << 37,
        can_interrupt: false,
        preparation: Span::from_us(2000.0),
        preparation_per_model: Span::from_us(1000.0),
        planning: Span::from_us(100_000.0),
        mixes: Vec::new(),
        noise: kind.noise,
        length: Span::from_s(2.0),
        seed,
    }
}

/// Partitions of different sizes, with models in several of them and several models in each.
fn overlapping(device: ServedDevice) -> FixedServing {
    let models = device.all_models();
    let some = |chosen: fn(usize) -> bool| {
        let chosen = models.iter().enumerate().filter(move |(index, _)| chosen(*index));
        chosen.map(|(_, model)| *model).collect::<Vec<_>>()
    };
    let limited: Vec<(ModelId, u32)> = models.iter().map(|(model, _)| (*model, 4)).collect();
    let partitions = vec![
        (UNITS / 2, some(|index| index % 2 == 0)),
        (UNITS / 4, some(|index| index % 3 != 0)),
        (UNITS / 4, limited),
    ];
    FixedServing::new("overlapping", device, partitions)
}

/// The share of accepted requests that were answered in time.
fn kept(outcome: &Outcome) -> f64 {
    let in_time: u64 = outcome.models.iter().map(|model| model.in_time).sum();
    let broken: u64 =
        outcome.models.iter().map(|model| model.late - model.late_trials + model.shed).sum();
    in_time as f64 / (in_time + broken).max(1) as f64
}

#[test]
fn what_is_accepted_is_answered_in_time() {
    for noise in [0.0, 0.05] {
        for burstiness in [1.0, 4.0] {
            for load in [0.5, 0.9, 2.0] {
                for seed in 0..5 {
                    let kind = Kind { load, burstiness, noise };
                    let world = world(kind, seed);
                    let policies: [Box<dyn Policy>; 3] = [
                        Box::new(time_sharing(world.served_device())),
                        Box::new(equal_partitions(world.served_device())),
                        Box::new(overlapping(world.served_device())),
                    ];
                    for mut policy in policies {
                        let kept = kept(&run(&world, &mut *policy).unwrap());
                        let least = if noise == 0.0 { 1.0 } else { 0.99 };
                        assert!(kept >= least, "{} {kind:?} {seed}: {kept}", policy.name());
                    }
                }
            }
        }
    }
}

#[test]
fn what_could_be_served_is_not_refused() {
    // The load at which a lane that refuses only what is late itself, and breaks what it cannot keep, has 99 % in time.
    let carried =
        [(0, 0.45, Some(0.45)), (1, 0.92, Some(1.2)), (2, 0.73, Some(1.12)), (4, 0.19, None)];
    for (seed, on_one_lane, on_partitions) in carried {
        let world = |load| world(Kind { load: 0.9 * load, burstiness: 1.0, noise: 0.03 }, seed);
        let whole = world(on_one_lane);
        let outcome = run(&whole, &mut time_sharing(whole.served_device())).unwrap();
        assert!(outcome.attainment() >= 0.985, "{seed}: {}", outcome.attainment());
        if let Some(load) = on_partitions {
            let divided = world(load);
            let outcome = run(&divided, &mut equal_partitions(divided.served_device())).unwrap();
            assert!(outcome.attainment() >= 0.985, "{seed}: {}", outcome.attainment());
        }
    }
}
