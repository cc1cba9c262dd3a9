//! Elastic partitioning: models, the one with the most requests first, take turns in a gpu-let that is there, or are given
//! one of the size that suits them.

use crate::identity::ModelId;
use crate::latency::MemoryShare;
use crate::policies::gpulets::gpulet::{
    Gpulet, MOST_MODELS, Seat, affordable_per_s, is_in_time_alone, sizes,
};
use crate::served::ServedDevice;

/// How many times the rate is planned for, as requests do not come evenly.
const RATE_MARGIN: f64 = 1.15;

/// What share of a model's rate is not worth another seat.
const NEGLIGIBLE: f64 = 0.02;

/// Halvings in the search for the most rate that fits.
const SEARCH_STEPS: u32 = 12;

/// The gpu-lets for models at these rates. Each model has a seat in one, or in several where one is not enough. No gpu-let
/// has more than [`MOST_MODELS`] as long as there are seats for all.
pub(super) fn gpulets(device: &ServedDevice, rates_per_s: &[f64]) -> Vec<Gpulet> {
    let mut models: Vec<ModelId> = (0..device.models.len() as u32).map(ModelId).collect();
    models.sort_by(|a, b| rates_per_s[b.index()].total_cmp(&rates_per_s[a.index()]));
    let mut partitioning = Partitioning {
        device,
        sizes: sizes(device.units),
        gpulets: Vec::new(),
        to_come: models.len(),
        has_seats_for_all: false,
    };
    let most_seats = partitioning.seats_left(device.units);
    partitioning.has_seats_for_all = models.len() <= most_seats;
    for model in models {
        partitioning.to_come -= 1;
        partitioning.place(model, rates_per_s[model.index()] * RATE_MARGIN);
    }
    partitioning.widen();
    partitioning.gpulets
}

struct Partitioning<'a> {
    device: &'a ServedDevice,
    sizes: Vec<u32>,
    gpulets: Vec<Gpulet>,
    /// Models that have not been looked at.
    to_come: usize,
    /// Whether all models find seats if no more are taken than needed.
    has_seats_for_all: bool,
}

/// A gpu-let as it would be with one more model.
struct Offer {
    /// The one that is there; `None` for a new one.
    place: Option<usize>,
    gpulet: Gpulet,
    /// What the model gets of its rate.
    rate_per_s: f64,
}

impl Partitioning<'_> {
    fn place(&mut self, model: ModelId, rate_per_s: f64) {
        let mut left_per_s = rate_per_s;
        while let Some(Offer { place, gpulet, rate_per_s: given_per_s }) =
            self.offer(model, left_per_s)
        {
            match place {
                Some(place) => self.gpulets[place] = gpulet,
                None => self.gpulets.push(gpulet),
            }
            left_per_s -= given_per_s;
            if left_per_s <= rate_per_s * NEGLIGIBLE {
                return;
            }
        }
        if !self.is_seated(model) {
            self.squeeze_in(Seat { model, rate_per_s });
        }
    }

    /// The best for a model that wants some rate: turns in the fullest gpu-let that can give it all; a new one; or turns
    /// where it gets most.
    fn offer(&self, model: ModelId, wanted_per_s: f64) -> Option<Offer> {
        if self.is_seated(model) && !self.can_seat_others(self.free_units()) {
            return None;
        }
        let turns: Vec<Offer> = self.turns(model, wanted_per_s).collect();
        let busy = |offer: &&Offer| offer.gpulet.busy(self.device);
        let whole = turns.iter().filter(|offer| offer.rate_per_s >= wanted_per_s);
        let fullest =
            whole.max_by(|a, b| busy(a).total_cmp(&busy(b))).and_then(|offer| offer.place);
        if fullest.is_some() {
            return turns.into_iter().find(|offer| offer.place == fullest);
        }
        let most = turns.into_iter().max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
        self.split_off(model, wanted_per_s).or(most)
    }

    /// What the model would get in each gpu-let that is there.
    fn turns(&self, model: ModelId, wanted_per_s: f64) -> impl Iterator<Item = Offer> {
        let has_room = move |gpulet: &Gpulet| {
            gpulet.seats.len() < MOST_MODELS && !gpulet.is_overloaded && !gpulet.has(model)
        };
        let places = self.gpulets.iter().enumerate().filter(move |(_, gpulet)| has_room(gpulet));
        places
            .filter_map(move |(place, gpulet)| self.most(Some(place), gpulet, model, wanted_per_s))
    }

    /// A new gpu-let of the smallest size that is at least ideal, or else of the largest that there is room for.
    fn split_off(&self, model: ModelId, wanted_per_s: f64) -> Option<Offer> {
        let ideal = self.efficient_size(model).min(self.required_size(model, wanted_per_s));
        let (enough, less): (Vec<u32>, Vec<u32>) =
            self.sizes_left().partition(|&units| units >= ideal);
        enough
            .into_iter()
            .chain(less.into_iter().rev())
            .find_map(|units| self.most(None, &empty(units), model, wanted_per_s))
    }

    /// The size at the bend of the rate over the size: where it is furthest above the straight line to the whole device.
    fn efficient_size(&self, model: ModelId) -> u32 {
        let affordable = |units: u32| affordable_per_s(&self.device.models[model.index()], units);
        let (whole, most_per_s) = (self.device.units, affordable(self.device.units));
        let above =
            |units: u32| affordable(units) / most_per_s - f64::from(units) / f64::from(whole);
        let sizes = self.sizes.iter().copied().filter(|&units| affordable(units) > 0.0);
        sizes.rev().max_by(|&a, &b| above(a).total_cmp(&above(b))).unwrap_or(whole)
    }

    /// The smallest size that is enough.
    fn required_size(&self, model: ModelId, rate_per_s: f64) -> u32 {
        let seat = Seat { model, rate_per_s };
        let is_enough =
            |&units: &u32| empty(units).with(seat).occupancy(self.device, &[]).is_some();
        self.sizes.iter().copied().find(is_enough).unwrap_or(self.device.units)
    }

    /// The most that a model can have in a gpu-let, of what it wants; `None` where that is nothing.
    fn most(
        &self,
        place: Option<usize>,
        gpulet: &Gpulet,
        model: ModelId,
        wanted_per_s: f64,
    ) -> Option<Offer> {
        let with = |rate_per_s: f64| gpulet.with(Seat { model, rate_per_s });
        let (mut fitting, mut too_much) = (0.0, wanted_per_s);
        if self.fits(&with(wanted_per_s), place) {
            fitting = wanted_per_s;
        } else {
            for _ in 0..SEARCH_STEPS {
                let middle = (fitting + too_much) / 2.0;
                match self.fits(&with(middle), place) {
                    true => fitting = middle,
                    false => too_much = middle,
                }
            }
            if fitting == 0.0 {
                return None;
            }
        }
        Some(Offer { place, gpulet: with(fitting), rate_per_s: fitting })
    }

    /// Whether all keep their objectives with a gpu-let in its place, beside what the others ask of the memory.
    fn fits(&self, candidate: &Gpulet, place: Option<usize>) -> bool {
        let stays = |other: &usize| Some(*other) != place;
        let others = (0..self.gpulets.len()).filter(stays).map(|other| &self.gpulets[other]);
        let all: Vec<&Gpulet> = others.chain([candidate]).collect();
        let shares: Vec<Option<MemoryShare>> =
            all.iter().map(|gpulet| gpulet.memory_share(self.device)).collect();
        all.iter().enumerate().all(|(at, gpulet)| {
            let beside: Vec<MemoryShare> = [&shares[..at], &shares[at + 1..]]
                .into_iter()
                .flatten()
                .filter_map(|share| *share)
                .collect();
            gpulet.is_overloaded || gpulet.occupancy(self.device, &beside).is_some()
        })
    }

    /// Seats a model that fits nowhere: in a gpu-let of its own where there is room, or in the least busy one that has a
    /// seat, if possible where it could be in time at all. Where all seats are taken, it sits with the least busy anyway.
    fn squeeze_in(&mut self, seat: Seat) {
        let model = &self.device.models[seat.model.index()];
        let smallest = self.sizes_left().find(|&units| is_in_time_alone(model, units));
        if let Some(units) = smallest.or(self.sizes_left().last()) {
            self.gpulets.push(Gpulet { is_overloaded: true, ..empty(units).with(seat) });
            return;
        }
        let device = self.device;
        let cost = |gpulet: &Gpulet| (!is_in_time_alone(model, gpulet.units), gpulet.busy(device));
        let order = |a: &&mut Gpulet, b: &&mut Gpulet| {
            let ((a_is_late, a_busy), (b_is_late, b_busy)) = (cost(a), cost(b));
            a_is_late.cmp(&b_is_late).then(a_busy.total_cmp(&b_busy))
        };
        let is_open = |gpulet: &Gpulet| gpulet.seats.len() < MOST_MODELS;
        let is_full = !self.gpulets.iter().any(is_open);
        let gpulets = self.gpulets.iter_mut().filter(|gpulet| is_full || is_open(gpulet));
        if let Some(gpulet) = gpulets.min_by(order) {
            gpulet.seats.push(seat);
            gpulet.is_overloaded = true;
        }
    }

    /// Gives units that are left over to the busiest gpu-let that they make one size larger, again and again.
    fn widen(&mut self) {
        loop {
            let free = self.free_units();
            let larger = |gpulet: &Gpulet| {
                let next = self.sizes.iter().copied().find(|&units| units > gpulet.units);
                next.filter(|&units| units - gpulet.units <= free)
            };
            let device = self.device;
            let widest = self.gpulets.iter_mut().filter(|gpulet| larger(gpulet).is_some());
            let busiest = widest.max_by(|a, b| a.busy(device).total_cmp(&b.busy(device)));
            let Some((gpulet, units)) =
                busiest.and_then(|gpulet| larger(gpulet).map(|units| (gpulet, units)))
            else {
                return;
            };
            gpulet.units = units;
        }
    }

    fn is_seated(&self, model: ModelId) -> bool {
        self.gpulets.iter().any(|gpulet| gpulet.has(model))
    }

    fn free_units(&self) -> u32 {
        self.device.units - self.gpulets.iter().map(|gpulet| gpulet.units).sum::<u32>()
    }

    /// Sizes that a new gpu-let may have.
    fn sizes_left(&self) -> impl DoubleEndedIterator<Item = u32> {
        let free = self.free_units();
        let sizes = self.sizes.iter().copied().filter(move |&units| units <= free);
        // A new gpu-let of any size has as many seats as one of the smallest.
        sizes.filter(move |&units| self.can_seat_others(free - units + self.sizes[0]))
    }

    /// Whether the models to come still find seats when one is taken now, with so many units free. Where there are too few
    /// seats anyway, none are kept for them.
    fn can_seat_others(&self, free: u32) -> bool {
        !self.has_seats_for_all || self.seats_left(free) > self.to_come
    }

    /// Seats that are open or could be, with so many units free.
    fn seats_left(&self, free: u32) -> usize {
        let open = self.gpulets.iter().map(|gpulet| MOST_MODELS.saturating_sub(gpulet.seats.len()));
        open.sum::<usize>() + MOST_MODELS * (free / self.sizes[0]) as usize
    }
}

fn empty(units: u32) -> Gpulet {
    Gpulet { units, seats: Vec::new(), is_overloaded: false }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policies::random_devices::device_with;

    fn divided(models: &[(f64, f64)], units: u32) -> Vec<Gpulet> {
        let rates: Vec<f64> = models.iter().map(|(rate, _)| *rate).collect();
        gpulets(&device_with(models, units), &rates)
    }

    #[test]
    fn light_models_take_turns_in_one_gpulet() {
        let gpulets = divided(&[(20.0, 30.0), (10.0, 30.0), (5.0, 30.0)], 16);
        assert_eq!(gpulets.len(), 1);
        assert_eq!(gpulets[0].seats.len(), 3);
        assert!(!gpulets[0].is_overloaded);
    }

    #[test]
    fn a_model_that_cannot_wait_for_another_has_a_gpulet_of_its_own() {
        let gpulets = divided(&[(20.0, 2.2), (10.0, 2.2)], 16);
        assert!(gpulets.iter().all(|gpulet| gpulet.seats.len() == 1 && !gpulet.is_overloaded));
        assert_eq!(gpulets.len(), 2);
    }

    #[test]
    fn a_hot_model_is_spread_over_several_gpulets_and_keeps_no_seat_that_another_needs() {
        let mut models = vec![(20_000.0, 30.0)];
        assert!(divided(&models, 16).len() > 1);
        models.extend([(5.0, 30.0); 14]);
        let gpulets = divided(&models, 16);
        for model in (0..15).map(ModelId) {
            assert!(gpulets.iter().any(|gpulet| gpulet.has(model)), "{model:?}");
        }
    }

    proptest! {
        #[test]
        fn sizes_are_those_of_the_list_seats_are_three_while_that_is_enough_and_everyone_is_seated(
            models in prop::collection::vec((0.0f64..2e4, 0.5f64..100.0), 0..30), units in 1u32..33,
        ) {
            let gpulets = divided(&models, units);
            let sizes = sizes(units);
            prop_assert!(gpulets.iter().map(|gpulet| gpulet.units).sum::<u32>() <= units);
            let most_seats = MOST_MODELS * (units / sizes[0]) as usize;
            for gpulet in &gpulets {
                prop_assert!(sizes.contains(&gpulet.units));
                prop_assert!(gpulet.seats.len() <= MOST_MODELS || models.len() > most_seats);
                let is_once = |seat: &Seat| {
                    gpulet.seats.iter().filter(|other| other.model == seat.model).count() == 1
                };
                prop_assert!(!gpulet.seats.is_empty() && gpulet.seats.iter().all(is_once));
            }
            let is_seated = |model: ModelId| gpulets.iter().any(|gpulet| gpulet.has(model));
            prop_assert!((0..models.len() as u32).map(ModelId).all(is_seated));
        }
    }
}
