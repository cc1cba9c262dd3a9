//! Fairness: who is served when not everyone can be.

use std::sync::Arc;

use weft_scheduler::plan::Slo;
use weft_scheduler::policies::time_sharing;
use weft_scheduler::{Profile, ProfilePoint, Span};
use weft_simulator::{Executed, Load, ModelOutcome, Observer, SimulatedModel, World, run_observed};

/// One item takes `us`, and sixteen take four times as long.
fn profile(us: f64) -> Arc<Profile> {
    let point = |batch: u32| {
        let latency = Span::from_us(us * (0.8 + 0.2 * f64::from(batch)));
        ProfilePoint { batch, units: 1, latency, dram_bytes: 0.0 }
    };
    Arc::new(Profile::new(&[1, 4, 16].map(point), 0).unwrap())
}

/// A model of one lane, whose answers are due within `slo_factor` times the time of one item.
#[derive(Clone, Copy)]
struct Tenant {
    us: f64,
    slo_factor: f64,
    /// What it asks for, as a share of the lane in batches that take half its objective.
    load: f64,
    weight: f64,
    priority: u8,
}

const TENANT: Tenant = Tenant { us: 500.0, slo_factor: 10.0, load: 0.3, weight: 1.0, priority: 0 };

impl Tenant {
    fn model(self) -> SimulatedModel {
        let profile = profile(self.us);
        let latency = Span::from_us(self.us * self.slo_factor);
        let fits = |batch: &u32| profile.latency(*batch, 1) * 2.0 <= latency;
        let batch = (1..=16).rev().find(fits).unwrap_or(1);
        let most_per_s = f64::from(batch) / profile.latency(batch, 1).seconds();
        SimulatedModel {
            name: String::new(),
            profile,
            load: Load::Poisson { rate_per_s: self.load * most_per_s },
            slo: Some(Slo { percentile: 0.99, latency }),
            weight: self.weight,
            priority: self.priority,
            group: None,
            late: None,
        }
    }
}

/// The time of the lane that each model had, in seconds.
struct LaneTime(Vec<f64>);

impl Observer for LaneTime {
    fn executed(&mut self, executed: Executed<'_>) {
        self.0[executed.model.index()] += executed.end.since(executed.start).seconds();
    }
}

/// What came of each model, and the time of the lane that it had.
fn play(tenants: &[Tenant], noise: f64) -> Vec<(ModelOutcome, f64)> {
    let world = World {
        models: tenants.iter().map(|tenant| tenant.model()).collect(),
        units: 1,
        bandwidth_bytes_per_s: 1e12,
        memory_bytes: 1 << 30,
        can_interrupt: false,
        preparation: Span::from_us(100.0),
        preparation_per_model: Span::from_us(1000.0),
        planning: Span::from_us(100_000.0),
        mixes: Vec::new(),
        noise,
        length: Span::from_s(10.0),
        seed: 5,
    };
    let mut lane_time = LaneTime(vec![0.0; tenants.len()]);
    let mut policy = time_sharing(world.served_device());
    let outcome = run_observed(&world, &mut policy, &mut lane_time).unwrap();
    assert!(outcome.promises_kept() >= 0.99, "{}", outcome.promises_kept());
    outcome.models.into_iter().zip(lane_time.0).collect()
}

#[test]
fn who_stays_within_its_share_is_served_whatever_others_ask_for() {
    for flood in [2.0, 5.0, 20.0] {
        for noise in [0.0, 0.03] {
            let outcome = play(&[Tenant { load: flood, ..TENANT }, TENANT], noise);
            let attainment = outcome[1].0.attainment();
            assert!(attainment >= 0.98, "{flood} {noise}: {attainment}");
            let busy_s = outcome[0].1 + outcome[1].1;
            assert!(busy_s > 9.5, "what is left is used: {busy_s}");
        }
    }
}

#[test]
fn one_flood_does_not_push_out_many_small_ones() {
    let small = Tenant { load: 0.02, ..TENANT };
    let mut tenants = vec![Tenant { load: 5.0, ..TENANT }];
    tenants.extend([small; 9]);
    let outcome = play(&tenants, 0.03);
    for (model, _) in &outcome[1..] {
        assert!(model.attainment() >= 0.95, "{}", model.attainment());
    }
}

#[test]
fn shares_follow_weights() {
    for (us, slo_factor) in [(500.0, 10.0), (200.0, 10.0), (500.0, 25.0)] {
        let heavy = Tenant { load: 3.0, weight: 3.0, ..TENANT };
        let light = Tenant { load: 3.0, us, slo_factor, ..TENANT };
        let outcome = play(&[heavy, light], 0.03);
        let ratio = outcome[0].1 / outcome[1].1;
        assert!((2.7..3.3).contains(&ratio), "{us} {slo_factor}: {ratio}");
    }
}

#[test]
fn a_higher_priority_is_served_first() {
    for (low, low_slo) in [(300.0, 10.0), (500.0, 10.0), (2000.0, 20.0)] {
        let high = Tenant { load: 0.5, priority: 1, ..TENANT };
        let low = Tenant { load: 5.0, us: low, slo_factor: low_slo, weight: 100.0, ..TENANT };
        let outcome = play(&[high, low], 0.03);
        let attainment = outcome[0].0.attainment();
        assert!(attainment >= 0.98, "{attainment}");
        assert!(outcome[1].0.in_time > 100, "what is left is used");
    }
}
