//! Best effort: it yields to what was promised, and does not starve.

use std::sync::Arc;

use weft_scheduler::plan::Slo;
use weft_scheduler::policies::time_sharing;
use weft_scheduler::{Profile, ProfilePoint, Span};
use weft_simulator::{Load, Outcome, SimulatedModel, World, run};

/// One item takes `us`, and sixteen take four times as long; answers are due within `slo_us`, if that is given.
fn model(us: f64, rate_per_s: f64, slo_us: Option<f64>) -> SimulatedModel {
    let point = |batch: u32| {
        let latency = Span::from_us(us * (0.8 + 0.2 * f64::from(batch)));
        ProfilePoint { batch, units: 1, latency, dram_bytes: 0.0 }
    };
    SimulatedModel {
        name: String::new(),
        profile: Arc::new(Profile::new(&[1, 4, 16].map(point), 0).unwrap()),
        load: Load::Poisson { rate_per_s },
        slo: slo_us.map(|us| Slo { percentile: 0.99, latency: Span::from_us(us) }),
        weight: 1.0,
        priority: 0,
        group: None,
        late: None,
    }
}

fn play(models: Vec<SimulatedModel>) -> Outcome {
    let world = World {
        models,
        units: 1,
        bandwidth_bytes_per_s: 1e12,
        memory_bytes: 1 << 30,
        can_interrupt: false,
        preparation: Span::from_us(100.0),
        preparation_per_model: Span::ZERO,
        planning: Span::ZERO,
        mixes: Vec::new(),
        noise: 0.03,
        length: Span::from_s(5.0),
        seed: 5,
    };
    run(&world, &mut time_sharing(world.served_device())).unwrap()
}

#[test]
fn a_tight_model_hardly_notices_a_flood_of_best_effort() {
    let tight = || model(200.0, 500.0, Some(2000.0));
    let alone = play(vec![tight()]).models[0].attainment();
    let beside = play(vec![tight(), model(300.0, 8000.0, None)]);
    assert!(beside.models[0].attainment() > alone - 0.01, "{}", beside.models[0].attainment());
    let answered_per_s = beside.models[1].in_time as f64 / beside.length.seconds();
    assert!(answered_per_s > 2000.0, "the time that is left is used: {answered_per_s}");
}

#[test]
fn best_effort_gets_its_turns_beside_an_overload_and_no_promise_is_broken_for_it() {
    let beside = play(vec![model(500.0, 20_000.0, Some(5000.0)), model(300.0, 200.0, None)]);
    assert!(beside.models[0].promises_kept() > 0.99, "{}", beside.models[0].promises_kept());
    assert_eq!(beside.models[1].in_time, beside.models[1].arrived);
    let waited = beside.models[1].latency(0.99);
    assert!(waited < Span::from_s(0.3), "{waited}");
}
