//! Every policy through small simulations: what it serves, and what it is known to be bad at.

use std::sync::Arc;

use weft_scheduler::plan::Slo;
use weft_scheduler::policies::{ALL, Sharing, named};
use weft_scheduler::{Action, Event, Policy, Profile, ProfilePoint, Span, Time};
use weft_simulator::{Load, Outcome, SimulatedModel, World, run};

const UNITS: u32 = 8;

/// A model whose batches take `fixed_us` on any number of units, and `item_us` per item divided among them.
struct Shape {
    fixed_us: f64,
    item_us: f64,
    slo_us: f64,
    rate_per_s: f64,
}

impl Shape {
    fn model(&self) -> SimulatedModel {
        let grid = [1u32, 4, 16]
            .into_iter()
            .flat_map(|batch| [1, 2, 4, UNITS].map(|units| (batch, units)));
        let point = |(batch, units): (u32, u32)| {
            let us = self.fixed_us + self.item_us * f64::from(batch) / f64::from(units);
            ProfilePoint { batch, units, latency: Span::from_us(us), dram_bytes: 0.0 }
        };
        let points: Vec<ProfilePoint> = grid.map(point).collect();
        SimulatedModel {
            name: "model".into(),
            profile: Arc::new(Profile::new(&points, 0).expect("the grid is full")),
            load: Load::Poisson { rate_per_s: self.rate_per_s },
            slo: Some(Slo { percentile: 0.99, latency: Span::from_us(self.slo_us) }),
            weight: 1.0,
            priority: 0,
            group: None,
            late: None,
        }
    }
}

fn world(shapes: &[Shape], noise: f64) -> World {
    World {
        models: shapes.iter().map(Shape::model).collect(),
        units: UNITS,
        bandwidth_bytes_per_s: 1e12,
        memory_bytes: 1 << 30,
        can_interrupt: false,
        preparation: Span::from_us(100.0),
        preparation_per_model: Span::from_us(1000.0),
        planning: Span::from_us(100_000.0),
        mixes: Vec::new(),
        noise,
        length: Span::from_s(3.0),
        seed: 7,
    }
}

fn play(policy: &str, world: &World) -> Outcome {
    let known = named(policy).expect("a known policy");
    run(world, &mut *known.make(world.served_device())).expect("the policy keeps the rules")
}

fn attainment(policy: &str, world: &World, model: usize) -> f64 {
    play(policy, world).models[model].attainment()
}

fn of(sharing: Sharing) -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(move |known| known.sharing == sharing).map(|known| known.name)
}

#[test]
fn light_load_is_served_by_all() {
    let shapes = [100.0, 300.0, 500.0].map(|fixed_us| Shape {
        fixed_us,
        item_us: 200.0,
        slo_us: 20_000.0,
        rate_per_s: 20.0,
    });
    let world = world(&shapes, 0.02);
    for known in ALL {
        let outcome = play(known.name, &world);
        assert!(outcome.attainment() > 0.999, "{}: {}", known.name, outcome.attainment());
    }
}

#[test]
fn under_overload_and_noise_all_keep_the_rules_and_serve_something() {
    let shape = |rate_per_s| Shape { fixed_us: 300.0, item_us: 400.0, slo_us: 4000.0, rate_per_s };
    let world = world(&[shape(20_000.0), shape(5000.0), shape(10.0)], 0.2);
    for known in ALL {
        let outcome = play(known.name, &world);
        for model in &outcome.models {
            let ended = model.in_time + model.late + model.refused + model.shed;
            assert_eq!(ended, model.arrived, "{}", known.name);
        }
        assert!(outcome.attainment() > 0.01, "{}: {}", known.name, outcome.attainment());
    }
}

#[test]
fn without_partitions_a_long_execution_breaks_a_neighbour_that_cannot_wait_for_it() {
    let fast = Shape { fixed_us: 200.0, item_us: 100.0, slo_us: 1500.0, rate_per_s: 200.0 };
    let slow = Shape { fixed_us: 5000.0, item_us: 100.0, slo_us: 100_000.0, rate_per_s: 100.0 };
    let world = world(&[fast, slow], 0.0);
    for policy in of(Sharing::TimeOnly) {
        let share = attainment(policy, &world, 0);
        assert!(share < 0.85, "{policy}: {share}");
    }
    for policy in of(Sharing::StaticSpatial) {
        let share = attainment(policy, &world, 0);
        assert!(share > 0.99, "{policy}: {share}");
    }
}

#[test]
fn equal_partitions_leave_a_hot_model_short_that_turns_on_the_whole_device_serve() {
    let hot = Shape { fixed_us: 100.0, item_us: 1600.0, slo_us: 12_000.0, rate_per_s: 2500.0 };
    let cold = || Shape { fixed_us: 100.0, item_us: 400.0, slo_us: 12_000.0, rate_per_s: 20.0 };
    let world = world(&[hot, cold(), cold(), cold()], 0.0);
    let equal = attainment("equal-partitions", &world, 0);
    assert!(equal < 0.6, "{equal}");
    let turns = play("time-sharing", &world).attainment();
    assert!(turns > 0.99, "{turns}");
}

#[test]
fn knees_give_units_to_the_model_that_can_use_them() {
    let frugal = || Shape { fixed_us: 900.0, item_us: 10.0, slo_us: 8000.0, rate_per_s: 300.0 };
    let hungry = Shape { fixed_us: 50.0, item_us: 3000.0, slo_us: 8000.0, rate_per_s: 1000.0 };
    let world = world(&[frugal(), frugal(), frugal(), hungry], 0.0);
    let equal = attainment("equal-partitions", &world, 3);
    let knee = play("knee-partitions", &world).attainment();
    assert!(equal < 0.8, "{equal}");
    assert!(knee > 0.99, "{knee}");
}

#[test]
fn round_robin_makes_the_urgent_wait_for_a_whole_round() {
    let urgent = Shape { fixed_us: 400.0, item_us: 100.0, slo_us: 1600.0, rate_per_s: 50.0 };
    let patient = || Shape { fixed_us: 400.0, item_us: 100.0, slo_us: 80_000.0, rate_per_s: 500.0 };
    let mut shapes = vec![urgent];
    shapes.extend((0..7).map(|_| patient()));
    let world = world(&shapes, 0.0);
    let round = attainment("round-robin", &world, 0);
    assert!(round < 0.7, "{round}");
    for policy in ["time-sharing", "clockwork"] {
        let share = attainment(policy, &world, 0);
        assert!(share > 0.95, "{policy}: {share}");
    }
}

/// A policy whose preparations are written down.
struct Recorded {
    policy: Box<dyn Policy>,
    /// When, how many units, which models.
    preparations: Vec<(Time, u32, Vec<u32>)>,
}

impl Policy for Recorded {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        self.policy.react(event, now, actions);
        for action in actions.iter() {
            if let Action::Prepare { units, models, .. } = action {
                let models = models.iter().map(|model| model.0).collect();
                self.preparations.push((now, units.len(), models));
            }
        }
    }
}

#[test]
fn gpulets_follow_the_load_in_the_sizes_of_the_list_with_three_models_at_most() {
    // The first model is hot for one period, then the second for one.
    let hungry = || Shape { fixed_us: 50.0, item_us: 8000.0, slo_us: 14_000.0, rate_per_s: 0.0 };
    let light = || Shape { fixed_us: 500.0, item_us: 500.0, slo_us: 14_000.0, rate_per_s: 10.0 };
    let mut world = world(&[hungry(), hungry(), light(), light(), light(), light()], 0.0);
    for (model, phase_s) in [(0, 0.0), (1, 60.0)] {
        world.models[model].load = Load::SquareWave {
            high_per_s: 350.0,
            low_per_s: 20.0,
            period: Span::from_s(80.0),
            share: 0.25,
            phase: Span::from_s(phase_s),
        };
    }
    world.length = Span::from_s(41.0);
    let policy = named("gpulets").expect("a known policy").make(world.served_device());
    let mut recorded = Recorded { policy, preparations: Vec::new() };
    let outcome = run(&world, &mut recorded).expect("the policy keeps the rules");
    for (_, units, models) in &recorded.preparations {
        assert!([2, 3, 4, 5, 6, 8].contains(units), "{units}");
        assert!((1..=3).contains(&models.len()), "{models:?}");
    }
    let units_of = |model: u32, seconds: std::ops::Range<f64>| {
        let then = recorded.preparations.iter().filter(|(at, _, models)| {
            seconds.contains(&at.since(Time::START).seconds()) && models.contains(&model)
        });
        then.map(|(_, units, _)| *units).max()
    };
    assert!(units_of(0, 0.0..30.0) > units_of(1, 0.0..30.0), "{:?}", recorded.preparations);
    assert!(units_of(1, 30.0..50.0) > units_of(0, 30.0..50.0), "{:?}", recorded.preparations);
    assert!(outcome.models[0].attainment() > 0.99, "{}", outcome.models[0].attainment());
}
