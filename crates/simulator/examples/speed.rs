//! How many requests are simulated in one second of wall time: `cargo run --release -p weft-simulator --example speed`.

use std::sync::Arc;
use std::time::Instant;

use weft_scheduler::plan::Slo;
use weft_scheduler::policies;
use weft_scheduler::{Profile, ProfilePoint, Span};
use weft_simulator::{Load, SimulatedModel, World, run};

fn profile(us: f64) -> Arc<Profile> {
    let grid = [1u32, 4, 16, 64]
        .into_iter()
        .flat_map(|batch| [1u32, 4, 16].map(move |units| (batch, units)));
    let point = |(batch, units): (u32, u32)| {
        let us = us * (0.7 + 0.3 * f64::from(batch)) * (0.2 + 0.8 / f64::from(units));
        ProfilePoint { batch, units, latency: Span::from_us(us), dram_bytes: 0.0 }
    };
    let points: Vec<ProfilePoint> = grid.map(point).collect();
    Arc::new(Profile::new(&points, 0).expect("the grid is full"))
}

#[allow(clippy::print_stdout)]
fn main() {
    let models: Vec<SimulatedModel> = (0..16)
        .map(|index| SimulatedModel {
            name: format!("model {index}"),
            profile: profile(100.0 + 20.0 * f64::from(index)),
            load: Load::Poisson { rate_per_s: 1500.0 },
            slo: Some(Slo { percentile: 0.99, latency: Span::from_us(20_000.0) }),
            weight: 1.0,
            priority: 0,
            group: None,
            late: None,
        })
        .collect();
    let world = World {
        models,
        units: 16,
        bandwidth_bytes_per_s: 4.8e12,
        memory_bytes: 1 << 37,
        can_interrupt: false,
        preparation: Span::from_us(2000.0),
        preparation_per_model: Span::from_us(1000.0),
        planning: Span::from_us(100_000.0),
        mixes: Vec::new(),
        noise: 0.05,
        length: Span::from_s(60.0),
        seed: 1,
    };
    for known in policies::ALL {
        let mut policy = known.make(world.served_device());
        let start = Instant::now();
        let outcome = run(&world, &mut *policy).expect("the policy keeps the rules");
        let elapsed = start.elapsed().as_secs_f64();
        let requests: u64 = outcome.models.iter().map(|model| model.arrived).sum();
        println!(
            "{:18} {requests} requests in {elapsed:.2} s: {:.0} k/s, {:.1} % in time",
            policy.name(),
            requests as f64 / elapsed * 1e-3,
            outcome.attainment() * 100.0
        );
    }
}
