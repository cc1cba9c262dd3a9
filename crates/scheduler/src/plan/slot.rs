//! A partition in the making: who takes turns in it, and what one more model could get there.

use crate::plan::candidates::Candidate;
use crate::plan::feasible::{HEADROOM, Turn, most_rate};

/// How far below the limit a rate is kept, so that the same sum in another order does not exceed it.
const BELOW_LIMIT: f64 = 1.0 - 1e-9;

/// Lengths of a round that batches are chosen for, as divisors of the tightest objective in the partition.
const ROUND_DIVISORS: [f64; 6] = [1.5, 2.0, 2.5, 3.3, 5.0, 10.0];

/// The most combinations of batches that are all tried; past that, only those that fit a common round are.
const MOST_COMBINATIONS: usize = 40;

/// One model's place in a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seat {
    pub(crate) model: usize,
    pub(crate) batch_index: usize,
    pub(crate) rate_per_s: f64,
}

/// A partition in the making.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Slot {
    pub(crate) units: u32,
    pub(crate) seats: Vec<Seat>,
    /// Whether it changed since every model that misses something was last offered a place in it.
    pub(crate) is_fresh: bool,
}

/// What a model would get in a slot, and the batches, the newcomer's last, with which everyone there keeps its objective.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offer {
    pub(crate) rate_per_s: f64,
    pub(crate) batch_indices: Vec<usize>,
    /// Turns that were looked at to find it: what the search is limited by.
    pub(crate) effort: usize,
}

impl Slot {
    /// What a model has here; zero for one that is not here.
    pub(crate) fn rate_of(&self, model: usize) -> f64 {
        self.seats.iter().find(|seat| seat.model == model).map_or(0.0, |seat| seat.rate_per_s)
    }

    /// A model leaves.
    pub(crate) fn vacate(&mut self, model: usize) {
        self.seats.retain(|seat| seat.model != model);
        self.is_fresh = true;
    }

    /// The best that a newcomer can get here, of what it wants, if the slot had so many units.
    pub(crate) fn offer(
        &self,
        candidates: &[Candidate],
        units: u32,
        newcomer: usize,
        wanted_per_s: f64,
    ) -> Offer {
        let mut table =
            Table { slot: self, candidates, units, newcomer, wanted_per_s, best: Offer::default() };
        let mut indices: Vec<usize> = self.seats.iter().map(|seat| seat.batch_index).collect();
        table.try_others_at(&indices);
        if table.best.rate_per_s < wanted_per_s && !self.seats.is_empty() {
            table.try_other_batches(&mut indices);
        }
        table.best
    }

    /// The newcomer takes its seat.
    pub(crate) fn accept(&mut self, units: u32, newcomer: usize, offer: &Offer) {
        self.units = units;
        self.is_fresh = true;
        for (seat, &batch_index) in self.seats.iter_mut().zip(&offer.batch_indices) {
            seat.batch_index = batch_index;
        }
        let batch_index = offer.batch_indices[self.seats.len()];
        self.seats.push(Seat { model: newcomer, batch_index, rate_per_s: offer.rate_per_s });
    }

    /// Whether everyone keeps its rate on so many units, with the same or other batches; those are taken.
    pub(crate) fn resize(&mut self, candidates: &[Candidate], units: u32) -> bool {
        let Some((last, others)) = self.seats.split_last() else {
            return true;
        };
        let rest = Slot { units: self.units, seats: others.to_vec(), is_fresh: true };
        let offer = rest.offer(candidates, units, last.model, last.rate_per_s);
        let fits = offer.rate_per_s >= last.rate_per_s;
        if fits {
            let last = last.model;
            *self = rest;
            self.accept(units, last, &offer);
        }
        fits
    }
}

/// The trying of batches for one offer.
struct Table<'a> {
    slot: &'a Slot,
    candidates: &'a [Candidate],
    units: u32,
    newcomer: usize,
    wanted_per_s: f64,
    best: Offer,
}

impl Table<'_> {
    /// Tries every batch of the newcomer while the others run theirs.
    fn try_others_at(&mut self, indices: &[usize]) {
        let seats = self.slot.seats.iter().zip(indices.iter());
        let others: Vec<Turn> = seats
            .map(|(seat, &index)| {
                self.candidates[seat.model].turn(index, self.units, seat.rate_per_s)
            })
            .collect();
        let spare = HEADROOM - others.iter().map(Turn::busy).sum::<f64>();
        let newcomer = &self.candidates[self.newcomer];
        for batch_index in 0..newcomer.batches.len() {
            let turn = newcomer.turn(batch_index, self.units, self.best.rate_per_s);
            if turn.busy() >= spare {
                continue;
            }
            self.best.effort += others.len() + 1;
            let most = most_rate(&others, &turn);
            let rate_per_s = (most * BELOW_LIMIT).min(self.wanted_per_s);
            if rate_per_s > self.best.rate_per_s {
                let batch_indices = indices.iter().copied().chain([batch_index]).collect();
                self.best = Offer { rate_per_s, batch_indices, effort: self.best.effort };
            }
            if rate_per_s >= self.wanted_per_s {
                return;
            }
        }
    }

    fn try_other_batches(&mut self, indices: &mut Vec<usize>) {
        let counts = self.slot.seats.iter().map(|seat| self.candidates[seat.model].batches.len());
        let combinations = counts.fold(1usize, usize::saturating_mul);
        if combinations <= MOST_COMBINATIONS {
            for combination in 0..combinations {
                self.set_combination(indices, combination);
                self.try_others_at(indices);
            }
            return;
        }
        let seats = self.slot.seats.iter().map(|seat| seat.model).chain([self.newcomer]);
        let tightest_s =
            seats.map(|model| self.candidates[model].slo_s()).fold(f64::INFINITY, f64::min);
        let mut tried = indices.clone();
        for divisor in ROUND_DIVISORS {
            for (index, seat) in indices.iter_mut().zip(&self.slot.seats) {
                *index =
                    self.candidates[seat.model].batch_for(seat.rate_per_s * tightest_s / divisor);
            }
            if *indices != tried {
                self.try_others_at(indices);
                tried.clone_from(indices);
            }
        }
    }

    fn set_combination(&self, indices: &mut [usize], mut combination: usize) {
        for (index, seat) in indices.iter_mut().zip(&self.slot.seats) {
            let count = self.candidates[seat.model].batches.len();
            (*index, combination) = (combination % count, combination / count);
        }
    }
}
