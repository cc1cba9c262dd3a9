//! Trials: who is refused though nothing is before it is served now and then all the same, without a promise. Where predictions are
//! too long for any request to be taken in, nothing else would ever show that they are.

/// One of so many requests that are refused in this way is tried at first, and one of twice as many after each trial that took as
/// long as predicted, up to a limit.
const AT_FIRST: u32 = 10;
const MOST: u32 = AT_FIRST << 10;

/// A trial that takes no longer than this share of what was predicted shows that more are worth it.
const SHORT: f64 = 0.95;

/// The trials of one model, or of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trials {
    one_of: u32,
    refused: u32,
}

impl Default for Trials {
    fn default() -> Self {
        Self { one_of: AT_FIRST, refused: 0 }
    }
}

impl Trials {
    /// A request is to be refused though nothing is before it; says whether it is tried.
    pub(super) fn is_next(&mut self) -> bool {
        self.refused += 1;
        let is_next = self.refused >= self.one_of;
        if is_next {
            self.refused = 0;
        }
        is_next
    }

    /// Something ran without a promise, and took so much of what was predicted.
    pub(super) fn observe(&mut self, share: f64) {
        self.one_of = if share <= SHORT { AT_FIRST } else { (2 * self.one_of).min(MOST) };
    }
}

#[cfg(test)]
mod tests {
    use crate::identity::ModelId;
    use crate::plan::Slo;
    use crate::policies::device_with;
    use crate::policy::{Action, PartitionId};
    use crate::request::{Request, RequestId};
    use crate::serving::{Serving, ServingPartition};
    use crate::time::{Span, Time};
    use crate::unit_mask::UnitMask;

    /// Which of so many requests, one after another, are served by a model that is thought to take a millisecond, really takes
    /// so long, and has so long.
    fn served(count: u64, really_us: f64, slo_us: f64) -> Vec<u64> {
        let mut device = device_with(&[(100.0, 1.0)], 4);
        device.models[0].slo = Some(Slo { percentile: 0.99, latency: Span::from_us(slo_us) });
        let (units, models) = (UnitMask::range(0, 4), device.all_models());
        let whole = ServingPartition { id: PartitionId(0), units, models };
        let (mut serving, mut actions) = (Serving::new(device), Vec::new());
        serving.switch(&[whole], Time::START, &mut actions);
        let mut launched = Vec::new();
        for number in 0..count {
            let arrived = Time::START + Span::from_us(1e5 * (number + 1) as f64);
            let (id, deadline) = (RequestId(number), arrived + Span::from_us(slo_us));
            let request = Request { id, model: ModelId(0), arrived, deadline };
            actions.clear();
            serving.arrive(&[request], arrived, &mut actions);
            let launch = actions.iter().find_map(|action| match action {
                Action::Launch { launch, .. } => Some(*launch),
                _ => None,
            });
            if let Some(launch) = launch {
                launched.push(number);
                serving.finish(launch, arrived + Span::from_us(really_us), &mut actions);
            }
        }
        launched
    }

    #[test]
    fn predictions_that_are_too_long_are_found_out_and_nobody_is_refused_any_more() {
        let served = served(2000, 330.0, 500.0);
        assert_eq!(served[0], 9);
        let first = served.windows(2).position(|pair| pair[0] + 1 == pair[1]).unwrap();
        assert!(served[first] < 500, "{}", served[first]);
        assert_eq!(served.len() - first, (2000 - served[first]) as usize);
    }

    #[test]
    fn an_objective_that_cannot_hold_is_tried_ever_less_often() {
        assert_eq!(served(2000, 920.0, 500.0), [9, 29, 69, 149, 309, 629, 1269]);
    }

    #[test]
    fn who_has_less_time_than_the_objective_is_not_tried() {
        let mut device = device_with(&[(100.0, 50.0)], 4);
        device.models[0].slo = Some(Slo { percentile: 0.99, latency: Span::from_us(5000.0) });
        let (units, models) = (UnitMask::range(0, 4), device.all_models());
        let whole = ServingPartition { id: PartitionId(0), units, models };
        let (mut serving, mut actions) = (Serving::new(device), Vec::new());
        serving.switch(&[whole], Time::START, &mut actions);
        for number in 0..100 {
            let deadline = Time::START + Span::from_us(500.0);
            let (id, model, arrived) = (RequestId(number), ModelId(0), Time::START);
            let request = Request { id, model, arrived, deadline };
            assert_eq!(serving.arrive(&[request], Time::START, &mut actions), 1);
        }
    }
}
