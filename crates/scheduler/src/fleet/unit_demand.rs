//! How many units a model keeps busy when it is served well: a cheap estimate, for thousands of models at once.

use crate::served::ServedModel;

/// The share of an objective that an execution may take: a request may have to wait for another to end first.
const EXECUTION_SHARE: f64 = 0.5;

/// The units that a model keeps busy on average at its expected rate, at the batch and on the number of units where that
/// is cheapest, among those that were measured and leave time to wait for a turn and to gather the batch.
pub fn unit_demand(model: &ServedModel, units: u32) -> f64 {
    let rate = model.expected_per_s.max(0.0);
    let profile = &model.profile;
    let sizes = || profile.units().iter().map(move |&size| size.min(units));
    let alone = profile.latency(1, units).seconds();
    let mut cheapest = f64::from(units) * alone;
    for &batch in profile.batches() {
        for size in sizes() {
            let latency = profile.latency(batch, size).seconds();
            let is_in_time = model.slo.is_none_or(|slo| {
                let limit = slo.latency.seconds();
                let gathering = f64::from(batch - 1) / rate;
                latency <= EXECUTION_SHARE * limit && gathering <= limit - latency / EXECUTION_SHARE
            });
            if is_in_time {
                cheapest = cheapest.min(f64::from(size) * latency / f64::from(batch));
            }
        }
    }
    rate * cheapest
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::plan::Slo;
    use crate::profile::{Profile, ProfilePoint};
    use crate::time::Span;

    fn demand(expected_per_s: f64, slo_us: Option<f64>) -> f64 {
        let point = |(batch, units, us)| ProfilePoint {
            batch,
            units,
            latency: Span::from_us(us),
            dram_bytes: 0.0,
        };
        let points = [(1, 1, 200.0), (1, 4, 100.0), (8, 1, 800.0), (8, 4, 400.0)].map(point);
        let model = ServedModel {
            profile: Arc::new(Profile::new(&points, 0).unwrap()),
            slo: slo_us.map(|us| Slo { percentile: 0.99, latency: Span::from_us(us) }),
            expected_per_s,
            weight: 1.0,
            priority: 0,
            group: None,
        };
        unit_demand(&model, 4)
    }

    #[test]
    fn objectives_and_rates_decide_how_cheap_it_can_be() {
        let is_near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        // Batches of eight on one unit cost 100 us of a unit each; there is time for them.
        assert!(is_near(demand(1e4, Some(5000.0)), 1.0));
        assert!(is_near(demand(1e4, None), 1.0));
        // Too slow a trickle to gather eight: one item on one unit costs 200 us of it.
        assert!(is_near(demand(1e3, Some(5000.0)), 0.2));
        // Only the whole device is fast enough: 400 us of a unit.
        assert!(is_near(demand(1e4, Some(250.0)), 4.0));
        // Nothing is; then as fast as can be.
        assert!(is_near(demand(1e4, Some(150.0)), 4.0));
        assert_eq!(demand(0.0, Some(150.0)), 0.0);
    }
}
