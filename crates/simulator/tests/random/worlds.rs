//! Random worlds, each from its seed.

use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use weft_scheduler::plan::Slo;
use weft_scheduler::{GroupId, Profile, ProfilePoint, Span, Time};
use weft_simulator::{Circumstances, Lateness, Load, SimulatedModel, World};

const BANDWIDTH_BYTES_PER_S: f64 = 1e12;

/// What a kind of world may be.
struct Bounds {
    /// How much work comes, in relation to what the whole device gets done one item at a time.
    load: (f64, f64),
    /// Objectives, in relation to one item alone.
    slo_factor: (f64, f64),
    /// How often there is none.
    best_effort: f64,
    noise: (f64, f64),
    has_all_loads: bool,
    length: Length,
}

/// How long requests come.
enum Length {
    Seconds(f64),
    /// Until about so many have come: a device that is asked for little is seen for long enough to be divided anew.
    Requests(f64),
}

/// The longest that a world lasts, whatever comes.
const MOST_SECONDS: f64 = 10.0;

/// Anything that can be: overload, tight objectives, noise, every kind of load.
pub(crate) fn any(seed: u64) -> World {
    let bounds = Bounds {
        load: (0.05, 4.0),
        slo_factor: (1.1, 20.0),
        best_effort: 0.2,
        noise: (0.0, 0.3),
        has_all_loads: true,
        length: Length::Requests(2500.0),
    };
    world(seed, &bounds)
}

/// Every model has an objective that can be kept, and durations stray by a few percent.
pub(crate) fn with_objectives(seed: u64) -> World {
    let bounds = Bounds {
        load: (0.1, 2.0),
        slo_factor: (2.0, 10.0),
        best_effort: 0.0,
        noise: (0.0, 0.04),
        has_all_loads: true,
        length: Length::Requests(5000.0),
    };
    world(seed, &bounds)
}

/// A load that a device carries, with objectives that leave room, for some seconds.
pub(crate) fn moderate(seed: u64) -> World {
    let bounds = Bounds {
        load: (0.1, 0.4),
        slo_factor: (10.0, 30.0),
        best_effort: 0.1,
        noise: (0.0, 0.04),
        has_all_loads: false,
        length: Length::Seconds(5.0),
    };
    world(seed, &bounds)
}

/// The same where durations are exactly as predicted, and one launch interrupts another.
pub(crate) fn exact(seed: u64) -> World {
    // Memory is shared, and this is so much that nobody notices.
    World { noise: 0.0, bandwidth_bytes_per_s: 1e30, can_interrupt: true, ..moderate(seed) }
}

/// What happens besides: calls of several rows, preparations that fail, moments in which something else uses the device.
pub(crate) fn circumstances(seed: u64) -> Circumstances {
    let mut random = SmallRng::seed_from_u64(seed ^ 0xC1BC);
    Circumstances {
        calls: random.random_range(0.0..0.3),
        most_rows: random.random_range(2..12),
        failed_preparations: random.random_range(0.0..0.6),
        slowest_preparation: random.random_range(0.5..20.0),
        pauses_per_s: random.random_range(1.0..30.0),
        pause: Span::from_us(random.random_range(100.0..4000.0)),
    }
}

fn world(seed: u64, bounds: &Bounds) -> World {
    let mut random = SmallRng::seed_from_u64(seed);
    let units = *pick(&mut random, &[1, 2, 4, 7, 16, 16, 16, 33]);
    let count = random.random_range(1..=8);
    let load = random.random_range(bounds.load.0..=bounds.load.1) / f64::from(count);
    let models = (0..count).map(|index| {
        let profile = profile(&mut random);
        let alone = profile.latency(1, units);
        let rate_per_s = load * random.random_range(0.2..1.8) / alone.seconds();
        let is_best_effort = random.random_bool(bounds.best_effort);
        let factor = random.random_range(bounds.slo_factor.0..bounds.slo_factor.1);
        SimulatedModel {
            name: format!("model {index}"),
            load: match bounds.has_all_loads {
                true => any_load(&mut random, rate_per_s),
                false => Load::Poisson { rate_per_s: rate_per_s.max(10.0) },
            },
            profile: Arc::new(profile),
            slo: (!is_best_effort).then_some(Slo { percentile: 0.99, latency: alone * factor }),
            weight: random.random_range(0.5..3.0),
            priority: random.random_range(0..3),
            group: None,
            late: None,
        }
    });
    let mut models: Vec<SimulatedModel> = models.collect();
    if seed % 3 == 2 {
        form_groups(&mut models, seed, units);
    }
    let rate: f64 = models.iter().map(|model| model.load.mean_per_s().min(1e5)).sum();
    let seconds = match bounds.length {
        Length::Seconds(seconds) => seconds,
        Length::Requests(count) => (count / rate).min(MOST_SECONDS),
    };
    World {
        models,
        units,
        bandwidth_bytes_per_s: BANDWIDTH_BYTES_PER_S,
        memory_bytes: 1 << 40,
        can_interrupt: random.random(),
        preparation: Span::from_us(random.random_range(10.0..100_000.0)),
        preparation_per_model: Span::from_us(1000.0),
        planning: Span::from_us(100_000.0),
        mixes: Vec::new(),
        noise: random.random_range(bounds.noise.0..=bounds.noise.1),
        length: Span::from_s(seconds),
        seed: random.random(),
    }
}

/// Makes about half of the models members of the group of the one before, with its work at other weights. Requests of some
/// come late.
fn form_groups(models: &mut [SimulatedModel], seed: u64, units: u32) {
    let mut random = SmallRng::seed_from_u64(!seed);
    for index in 1..models.len() {
        if random.random_bool(0.5) {
            let before = &mut models[index - 1];
            let group = *before.group.get_or_insert(GroupId(index as u32));
            let (profile, slo, priority) = (before.profile.clone(), before.slo, before.priority);
            let alone = |profile: &Profile| profile.latency(1, units).seconds();
            let member = &mut models[index];
            let faster = alone(&member.profile) / alone(&profile);
            let (load, name, weight) =
                (member.load.scaled(faster), member.name.clone(), member.weight);
            let group = Some(group);
            let late = random.random_bool(0.4).then(|| Lateness {
                share: random.random_range(0.3..1.0),
                spent: random.random_range(0.1..0.8),
            });
            *member = SimulatedModel { name, profile, load, slo, weight, priority, group, late };
        }
    }
}

/// A part that takes as long on any number of units, one that is divided among them, and one that waits for memory.
fn profile(random: &mut SmallRng) -> Profile {
    let size_us = 10f64.powf(random.random_range(1.5..3.3));
    let (serial, gain) = (random.random_range(0.05..0.6), random.random_range(0.05..0.9));
    let memory = random.random_range(0.0f64..0.8).powi(2);
    let mut points = Vec::new();
    for batch in [1u32, 2, 4, 8, 16] {
        for units in [1u32, 2, 4, 8, 16, 32] {
            let items = 1.0 + f64::from(batch - 1) * gain;
            let us = size_us * items * (serial + (1.0 - serial) / f64::from(units));
            let dram_bytes = memory * size_us * serial * items * 1e-6 * BANDWIDTH_BYTES_PER_S;
            points.push(ProfilePoint { batch, units, latency: Span::from_us(us), dram_bytes });
        }
    }
    Profile::new(&points, 1 << random.random_range(20..32)).expect("the grid is full")
}

fn any_load(random: &mut SmallRng, rate_per_s: f64) -> Load {
    let period = Span::from_s(random.random_range(0.02..5.0));
    let phase = Span::from_s(random.random_range(0.0..5.0));
    let low_per_s = rate_per_s * random.random_range(0.0..0.5);
    match random.random_range(0..7) {
        0 => Load::Gamma { rate_per_s, burstiness: random.random_range(0.2..6.0) },
        1 => {
            let share = random.random_range(0.1..0.9);
            Load::SquareWave { high_per_s: rate_per_s, low_per_s, period, share, phase }
        }
        2 => Load::Diurnal { high_per_s: rate_per_s, low_per_s, period, phase },
        3 => Load::ClosedLoop {
            clients: random.random_range(1..20),
            think: Span::from_us(random.random_range(0.0..10_000.0)),
        },
        4 => {
            let seconds = 200.0 / rate_per_s;
            let mut times: Vec<Time> = (0..200)
                .map(|_| Time::START + Span::from_s(random.random_range(0.0..seconds)))
                .collect();
            times.sort_unstable();
            Load::Trace { times: times.into(), multiplicity: random.random_range(0.5..2.5) }
        }
        _ => Load::Poisson { rate_per_s },
    }
}

fn pick<'a, T>(random: &mut SmallRng, list: &'a [T]) -> &'a T {
    &list[random.random_range(0..list.len())]
}
