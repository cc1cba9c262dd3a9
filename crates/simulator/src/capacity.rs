//! Capacity: the most load at which a policy still answers a given share of the requests in time.

use weft_scheduler::Policy;

use crate::outcome::Outcome;
use crate::run::run;
use crate::violation::Violation;
use crate::world::World;

/// Loads are found to this share.
const PRECISION: f64 = 0.01;

/// The least and the most load that is looked at, in relation to the world's.
const LEAST: f64 = 1.0 / 4096.0;
const MOST: f64 = 4096.0;

/// The most load that a policy carries.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// What the world's rates are multiplied with; zero where even the least load is too much.
    pub factor: f64,
    /// What came of that load.
    pub outcome: Outcome,
}

/// Searches the most load, as a factor on the world's, at which the policy answers `target` of the requests in time.
/// Attainment is taken to fall with load: where it does not, this is a load that is carried next to one that is not.
pub fn capacity(
    world: &World,
    make: &dyn Fn(&World) -> Box<dyn Policy>,
    target: f64,
) -> Result<Capacity, Violation> {
    let play = |factor: f64| {
        let scaled = world.scaled(factor);
        run(&scaled, &mut *make(&scaled))
    };
    // A load so low that nothing came says nothing.
    let came = |outcome: &Outcome| outcome.models.iter().any(|model| model.arrived > 0);
    let holds = |outcome: &Outcome| came(outcome) && outcome.attainment() >= target;
    let mut best = Capacity { factor: 0.0, outcome: Outcome::default() };
    let mut factor = 1.0;
    let first = play(factor)?;
    let step = if holds(&first) { 2.0 } else { 0.5 };
    let mut outcome = first;
    let (mut low, mut high) = (0.0, f64::INFINITY);
    loop {
        match holds(&outcome) {
            true => {
                low = factor;
                best = Capacity { factor, outcome };
            }
            false => high = factor,
        }
        let is_bracketed = low > 0.0 && high.is_finite();
        if is_bracketed && high <= low * (1.0 + PRECISION) {
            return Ok(best);
        }
        factor = if is_bracketed { (low * high).sqrt() } else { factor * step };
        if !(LEAST..=MOST).contains(&factor) {
            return Ok(best);
        }
        outcome = play(factor)?;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weft_scheduler::plan::Slo;
    use weft_scheduler::policies::time_sharing;
    use weft_scheduler::{Profile, ProfilePoint, Span};

    use super::*;
    use crate::load::Load;
    use crate::world::SimulatedModel;

    fn world(rate_per_s: f64, slo_us: f64) -> World {
        let point =
            ProfilePoint { batch: 1, units: 1, latency: Span::from_us(1000.0), dram_bytes: 0.0 };
        let model = SimulatedModel {
            name: "plain".into(),
            profile: Arc::new(Profile::new(&[point], 0).unwrap()),
            load: Load::Poisson { rate_per_s },
            slo: Some(Slo { percentile: 0.99, latency: Span::from_us(slo_us) }),
            weight: 1.0,
            priority: 0,
            group: None,
            late: None,
        };
        World {
            models: vec![model],
            units: 1,
            bandwidth_bytes_per_s: 1e12,
            memory_bytes: 1 << 30,
            can_interrupt: false,
            preparation: Span::ZERO,
            preparation_per_model: Span::from_us(1000.0),
            planning: Span::from_us(100_000.0),
            mixes: Vec::new(),
            noise: 0.0,
            length: Span::from_s(5.0),
            seed: 1,
        }
    }

    fn most_per_s(rate_per_s: f64, slo_us: f64) -> f64 {
        let make =
            |world: &World| -> Box<dyn Policy> { Box::new(time_sharing(world.served_device())) };
        rate_per_s * capacity(&world(rate_per_s, slo_us), &make, 0.99).unwrap().factor
    }

    #[test]
    fn the_most_load_of_one_server_is_that_of_queueing_theory() {
        // A server of 1000/s with constant service times; long deadlines let it be busy nearly all the time.
        let loose = most_per_s(10.0, 100_000.0);
        assert!((930.0..1030.0).contains(&loose), "{loose}");
        // Where nobody may wait, one request in a hundred finds it busy at 10/s.
        let tight = most_per_s(640.0, 1000.0);
        assert!((7.0..14.0).contains(&tight), "{tight}");
    }

    #[test]
    fn what_never_holds_has_no_capacity() {
        assert_eq!(most_per_s(100.0, 900.0), 0.0);
    }
}
