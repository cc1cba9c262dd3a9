//! Weft's policy under loads that change: it follows, loses nothing on the way, and rests where nothing changes.

use std::sync::Arc;

use weft_scheduler::plan::Slo;
use weft_scheduler::policies::Weft;
use weft_scheduler::{Profile, ProfilePoint, Span};
use weft_simulator::{Load, Outcome, SimulatedModel, World, run};

const UNITS: u32 = 8;

/// Takes `serial_us` for each item on any number of units, and `item_us` divided among them.
fn model(serial_us: f64, item_us: f64, slo_us: f64, load: Load) -> SimulatedModel {
    let grid = [1u32, 4, 16].into_iter().flat_map(|batch| [1, 2, 4, UNITS].map(|u| (batch, u)));
    let point = |(batch, units): (u32, u32)| {
        let us = f64::from(batch) * (serial_us + item_us / f64::from(units));
        ProfilePoint { batch, units, latency: Span::from_us(us), dram_bytes: 0.0 }
    };
    let points: Vec<ProfilePoint> = grid.map(point).collect();
    SimulatedModel {
        name: "model".into(),
        profile: Arc::new(Profile::new(&points, 0).expect("the grid is full")),
        load,
        slo: Some(Slo { percentile: 0.99, latency: Span::from_us(slo_us) }),
        weight: 1.0,
        priority: 0,
        group: None,
        late: None,
    }
}

fn world(models: Vec<SimulatedModel>, seconds: f64) -> World {
    World {
        models,
        units: UNITS,
        bandwidth_bytes_per_s: 1e12,
        memory_bytes: 1 << 30,
        can_interrupt: false,
        preparation: Span::from_us(2_000.0),
        preparation_per_model: Span::from_us(73_000.0),
        planning: Span::from_us(200_000.0),
        mixes: Vec::new(),
        noise: 0.03,
        length: Span::from_s(seconds),
        seed: 3,
    }
}

fn play(world: &World) -> Outcome {
    run(world, &mut Weft::new(world.served_device())).expect("the policy keeps the rules")
}

/// One load is high while the other is low: a model that needs large partitions, and one that needs many.
fn moving(seconds: f64) -> World {
    let wave = |high_per_s: f64, phase_s: f64| Load::SquareWave {
        high_per_s,
        low_per_s: high_per_s / 20.0,
        period: Span::from_s(20.0),
        share: 0.5,
        phase: Span::from_s(phase_s),
    };
    let heavy = model(20.0, 700.0, 420.0, wave(2000.0, 0.0));
    let light = model(300.0, 20.0, 1000.0, wave(10_000.0, 10.0));
    world(vec![heavy, light], seconds)
}

#[test]
fn a_load_that_moves_is_followed_and_nothing_is_lost() {
    let outcome = play(&moving(40.0));
    assert!(outcome.attainment() >= 0.98, "{}", outcome.attainment());
    assert!(outcome.reconfigurations.deactivated > 0, "{:?}", outcome.reconfigurations);
    let came_back = outcome.reconfigurations.activated > outcome.reconfigurations.prepared;
    assert!(came_back, "prepared partitions are used again: {:?}", outcome.reconfigurations);
}

#[test]
fn slow_reconfiguration_costs_what_quick_one_saves() {
    let quick = play(&moving(20.0)).attainment();
    let slow = World { preparation: Span::from_s(10.0), ..moving(20.0) };
    let slow = play(&slow).attainment();
    assert!(quick > slow + 0.02, "{quick} {slow}");
}

#[test]
fn a_steady_load_is_left_alone() {
    let steady = |per_s| Load::Poisson { rate_per_s: per_s };
    let models =
        vec![model(20.0, 700.0, 600.0, steady(800.0)), model(300.0, 20.0, 1500.0, steady(6000.0))];
    let outcome = play(&world(models, 20.0));
    assert!(outcome.attainment() > 0.99, "{}", outcome.attainment());
    assert_eq!(outcome.reconfigurations.deactivated, 0, "{:?}", outcome.reconfigurations);
}
