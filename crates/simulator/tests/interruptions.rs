//! What it is worth that a launch can interrupt another: short requests beside long ones on two units.

use std::sync::Arc;

use weft_scheduler::plan::Slo;
use weft_scheduler::policies::ALL;
use weft_scheduler::{Profile, ProfilePoint, Span};
use weft_simulator::{Load, ModelOutcome, Outcome, SimulatedModel, World, run};

const NAMES: [&str; 3] = ["short", "middle", "long"];
const ALONE_MS: [f64; 3] = [4.0, 10.6, 14.7];
const OBJECTIVE: f64 = 5.0;

/// Three models that take so long on both units and 1.85 times as long on one; each takes a third of `load`.
fn world(load: f64, noise: f64, can_interrupt: bool) -> World {
    let model = |(name, alone_ms): (&str, f64)| {
        let point = |units, ms: f64| ProfilePoint {
            batch: 1,
            units,
            latency: Span::from_us(ms * 1e3),
            dram_bytes: 0.0,
        };
        let points = [point(1, 1.85 * alone_ms), point(2, alone_ms)];
        SimulatedModel {
            name: name.into(),
            profile: Arc::new(Profile::new(&points, 1 << 20).unwrap()),
            load: Load::Poisson { rate_per_s: load / 3.0 / (alone_ms * 1e-3) },
            slo: Some(Slo { percentile: 0.99, latency: Span::from_us(OBJECTIVE * alone_ms * 1e3) }),
            weight: 1.0,
            priority: 0,
            group: None,
            late: None,
        }
    };
    World {
        models: NAMES.into_iter().zip(ALONE_MS).map(model).collect(),
        units: 2,
        bandwidth_bytes_per_s: 1e10,
        memory_bytes: 1 << 30,
        can_interrupt,
        preparation: Span::from_us(1e5),
        preparation_per_model: Span::from_us(1e4),
        planning: Span::from_us(2e5),
        mixes: Vec::new(),
        noise,
        length: Span::from_s(400.0),
        seed: 3,
    }
}

fn play(world: &World, policy: &str) -> Outcome {
    let policy = ALL.iter().find(|known| known.name == policy).unwrap();
    run(world, &mut *policy.make(world.served_device())).unwrap()
}

/// The share of all requests that is not answered in time, and of the short ones.
fn lost(outcome: &Outcome) -> (f64, f64) {
    let late = |of: &ModelOutcome| of.arrived - of.in_time;
    let all: u64 = outcome.models.iter().map(|of| of.arrived).sum();
    let short = &outcome.models[0];
    let all_late: u64 = outcome.models.iter().map(late).sum();
    (all_late as f64 / all as f64, late(short) as f64 / short.arrived as f64)
}

#[test]
fn short_requests_are_not_blocked_by_long_ones() {
    // The share of what is lost in turns that may be lost with interruptions: of all requests, and of the short ones.
    for (noise, most_of_all, most_of_short) in [(0.0, 0.8, 0.7), (0.2, 0.35, 0.25)] {
        let (in_turn, short_in_turn) = lost(&play(&world(0.6, noise, false), "weft"));
        let (interrupting, short_interrupting) = lost(&play(&world(0.6, noise, true), "weft"));
        let seen =
            format!("{noise}: {in_turn} {short_in_turn} {interrupting} {short_interrupting}");
        assert!(interrupting < most_of_all * in_turn, "{seen}");
        assert!(short_interrupting < most_of_short * short_in_turn, "{seen}");
    }
}

#[test]
fn baselines_take_turns() {
    let of = |can_interrupt| lost(&play(&world(0.6, 0.1, can_interrupt), "time-sharing"));
    assert_eq!(of(true), of(false));
}
