//! One gpu-let: a partition of one of a few sizes, whose models take turns in a duty cycle.

use crate::identity::ModelId;
use crate::latency::MemoryShare;
use crate::policies::working_batch::{busy_share, working_batch};
use crate::served::{ServedDevice, ServedModel};

/// The sizes that a gpu-let may have, in percent of the device, in increasing order.
const SIZES_PERCENT: [u32; 6] = [20, 40, 50, 60, 80, 100];

/// The most models that take turns in one gpu-let.
pub(super) const MOST_MODELS: usize = 3;

/// How much longer batches are planned to take than profiled.
const LATENCY_MARGIN: f64 = 1.05;

/// Duty cycles that are tried, as parts of the longest that the objectives allow.
const CYCLE_STEPS: u32 = 32;

/// The longest duty cycle where nothing was promised.
const LOOSE_CYCLE_S: f64 = 1.0;

/// A model's turns in a gpu-let.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seat {
    pub(super) model: ModelId,
    pub(super) rate_per_s: f64,
}

/// One gpu-let.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gpulet {
    pub(super) units: u32,
    pub(super) seats: Vec<Seat>,
    /// Whether a model is here that does not fit, as it had to go somewhere.
    pub(super) is_overloaded: bool,
}

/// The sizes in units, in increasing order.
pub(super) fn sizes(units: u32) -> Vec<u32> {
    let in_units = |percent: u32| ((units * percent + 50) / 100).max(1);
    let mut sizes: Vec<u32> = SIZES_PERCENT.map(in_units).to_vec();
    sizes.dedup();
    sizes
}

/// The most requests per second of a model alone in a gpu-let of so many units, of which each waits for one batch at most.
pub(super) fn affordable_per_s(model: &ServedModel, units: u32) -> f64 {
    let batch = working_batch(model, units);
    let latency_s = model.profile.latency(batch, units).seconds();
    if 2.0 * latency_s <= slo_s(model) { f64::from(batch) / latency_s } else { 0.0 }
}

/// Whether a single request that need not wait is answered in time on so many units.
pub(super) fn is_in_time_alone(model: &ServedModel, units: u32) -> bool {
    model.profile.latency(1, units).seconds() * LATENCY_MARGIN <= slo_s(model)
}

impl Gpulet {
    pub(super) fn has(&self, model: ModelId) -> bool {
        self.seats.iter().any(|seat| seat.model == model)
    }

    /// The same with one more model.
    pub(super) fn with(&self, seat: Seat) -> Self {
        let mut seats = self.seats.clone();
        seats.push(seat);
        Self { seats, ..*self }
    }

    /// The share of its time that it is busy when everyone runs full batches.
    pub(super) fn busy(&self, device: &ServedDevice) -> f64 {
        let model = |seat: &Seat| &device.models[seat.model.index()];
        self.seats.iter().map(|seat| busy_share(model(seat), self.units, seat.rate_per_s)).sum()
    }

    /// The most of the memory's bandwidth that any of its models asks for.
    pub(super) fn memory_share(&self, device: &ServedDevice) -> Option<MemoryShare> {
        let shares = self.seats.iter().map(|seat| {
            let model = &device.models[seat.model.index()];
            memory_share(model, working_batch(model, self.units), self.units, device)
        });
        shares.max_by(|a, b| a.value().total_cmp(&b.value()))
    }

    /// The share of its duty cycle that it is busy, beside others that run; `None` where no cycle keeps all objectives.
    ///
    /// In a cycle each model runs once, with what came in one cycle. All turns must fit into it, and a request that just
    /// missed its turn waits for a whole cycle and then for its own batch.
    pub(super) fn occupancy(&self, device: &ServedDevice, others: &[MemoryShare]) -> Option<f64> {
        let slack = self.seats.iter().map(|seat| {
            let model = &device.models[seat.model.index()];
            slo_s(model) - latency_s(model, 1, self.units, device, others)
        });
        let step_s = slack.fold(LOOSE_CYCLE_S, f64::min) / f64::from(CYCLE_STEPS);
        let cycles = (1..=CYCLE_STEPS).rev().map(|step| step_s * f64::from(step));
        cycles.filter(|&cycle_s| cycle_s > 0.0).find_map(|cycle_s| {
            let turns = self.seats.iter().map(|seat| self.turn_s(seat, cycle_s, device, others));
            let occupancy = turns.sum::<Option<f64>>()? / cycle_s;
            (occupancy <= 1.0).then_some(occupancy)
        })
    }

    /// How long a model's turn takes, where it keeps its objective.
    fn turn_s(
        &self,
        seat: &Seat,
        cycle_s: f64,
        device: &ServedDevice,
        others: &[MemoryShare],
    ) -> Option<f64> {
        let model = &device.models[seat.model.index()];
        let batch = (seat.rate_per_s * cycle_s).ceil().max(1.0);
        if batch > f64::from(model.largest_batch()) {
            return None;
        }
        let turn_s = latency_s(model, batch as u32, self.units, device, others);
        (cycle_s + turn_s <= slo_s(model)).then_some(turn_s)
    }
}

fn slo_s(model: &ServedModel) -> f64 {
    model.slo.map_or(f64::INFINITY, |slo| slo.latency.seconds())
}

fn memory_share(model: &ServedModel, batch: u32, units: u32, device: &ServedDevice) -> MemoryShare {
    MemoryShare::of_batch(&model.profile, batch, units, device.bandwidth_bytes_per_s)
}

/// How long a batch takes beside others, with the margin.
fn latency_s(
    model: &ServedModel,
    batch: u32,
    units: u32,
    device: &ServedDevice,
    others: &[MemoryShare],
) -> f64 {
    let slowdown = memory_share(model, batch, units, device).slowdown(others);
    model.profile.latency(batch, units).seconds() * slowdown * LATENCY_MARGIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::random_devices::device_with;

    #[test]
    fn sizes_are_those_of_the_list() {
        assert_eq!(sizes(16), [3, 6, 8, 10, 13, 16]);
        assert_eq!(sizes(100), SIZES_PERCENT);
        assert_eq!(sizes(2), [1, 2]);
        assert_eq!(sizes(1), [1]);
    }

    #[test]
    fn a_cycle_must_hold_all_turns_and_be_waited_for() {
        // A batch of one takes a millisecond and the margin: two fit a cycle of 2.1, and 3.15 passes until the answer.
        let occupancy = |slo_ms: f64, rate: f64| {
            let device = device_with(&[(rate, slo_ms), (rate, slo_ms)], 1);
            let seats = [ModelId(0), ModelId(1)].map(|model| Seat { model, rate_per_s: rate });
            let gpulet = Gpulet { units: 1, seats: seats.to_vec(), is_overloaded: false };
            gpulet.occupancy(&device, &[])
        };
        assert!(occupancy(3.3, 10.0).is_some());
        assert_eq!(occupancy(3.1, 10.0), None);
        assert!(occupancy(20.0, 10.0).unwrap() < 0.2);
        assert!(occupancy(20.0, 400.0).unwrap() > 0.5);
        assert_eq!(occupancy(20.0, 2000.0), None);
    }

    #[test]
    fn memory_that_others_use_slows_turns_down() {
        let device = device_with(&[(10.0, 20.0)], 1);
        let seats = vec![Seat { model: ModelId(0), rate_per_s: 10.0 }];
        let gpulet = Gpulet { units: 1, seats, is_overloaded: false };
        let others = [MemoryShare::of(1.0, crate::time::Span::from_s(1.0), 1.0); 8];
        let alone = gpulet.occupancy(&device, &[]).unwrap();
        assert!(gpulet.occupancy(&device, &others).unwrap() > alone * 1.5);
    }
}
