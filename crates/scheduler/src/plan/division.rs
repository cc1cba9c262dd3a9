//! A device that is being divided: models are put into it and taken out again, and it knows what it is worth.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::plan::candidates::Candidate;
use crate::plan::check::RATE_TOLERANCE;
use crate::plan::slot::{Offer, Slot};

/// The least share of what a model asks for that is worth one more replica.
const LEAST_SHARE: f64 = 0.01;

/// The units that a place in an existing partition counts as, when it is compared with one that takes units: not quite
/// nothing, or else crumbs would be gathered from every partition before one unit is spent.
const FREE_PLACE_UNITS: f64 = 0.1;

/// The relative difference in worth that is rounding.
const WORTH_TOLERANCE: f64 = 1e-9;

/// What asking for an offer costs besides the turns that it looks at, in turns.
const EFFORT_OF_ASKING: usize = 5;

/// How a model's place is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preference {
    /// All of its rate in one place, with the fewest units; only then the most rate per unit.
    Whole,
    /// Likewise, where a partition that has not changed since everyone was offered a place in it needs units to be asked again.
    Fresh,
    /// The most rate per unit.
    Dense,
}

/// A device that is being divided.
#[derive(Clone, Debug)]
pub(crate) struct Division {
    pub(crate) slots: Vec<Slot>,
    pub(crate) free_units: u32,
    pub(crate) free_bytes: u64,
    /// By model.
    pub(crate) missing_per_s: Vec<f64>,
    /// Turns that were looked at: what the search is limited by.
    pub(crate) effort: usize,
}

/// A place for a model: which slot (one past the last is a new one), how many units are added, and what it gains.
struct Place {
    slot: usize,
    added_units: u32,
    gained_per_s: f64,
    offer: Offer,
}

impl Division {
    pub(crate) fn new(candidates: &[Candidate], memory_bytes: u64) -> Self {
        Self {
            slots: Vec::new(),
            free_units: 0,
            free_bytes: memory_bytes,
            missing_per_s: candidates.iter().map(|candidate| candidate.asked_per_s).collect(),
            effort: 0,
        }
    }

    /// Gives a model as much of what it misses as there is room for, but for a share that it is to miss.
    pub(crate) fn insert(
        &mut self,
        candidates: &[Candidate],
        model: usize,
        preference: Preference,
        missed_share: f64,
    ) {
        let candidate = &candidates[model];
        if !self.is_resident(model) && candidate.memory_bytes > self.free_bytes {
            return;
        }
        let left_per_s = candidate.asked_per_s * missed_share;
        while self.missing_per_s[model] > left_per_s {
            let wanted_per_s = self.missing_per_s[model] - left_per_s;
            let Some(place) = self.best_place(candidates, model, wanted_per_s, preference) else {
                return;
            };
            if !self.is_resident(model) {
                self.free_bytes -= candidate.memory_bytes;
            }
            if place.slot == self.slots.len() {
                self.slots.push(Slot::default());
            }
            let slot = &mut self.slots[place.slot];
            slot.vacate(model);
            slot.accept(slot.units + place.added_units, model, &place.offer);
            self.free_units -= place.added_units;
            let missing = self.missing_per_s[model] - place.gained_per_s;
            let is_rounding = missing < candidate.asked_per_s * RATE_TOLERANCE / 2.0;
            self.missing_per_s[model] = if is_rounding { 0.0 } else { missing };
        }
    }

    fn best_place(
        &mut self,
        candidates: &[Candidate],
        model: usize,
        wanted_per_s: f64,
        preference: Preference,
    ) -> Option<Place> {
        let least = (candidates[model].asked_per_s * LEAST_SHARE).min(wanted_per_s);
        let mut whole: Option<Place> = None;
        let mut densest: Option<(f64, Place)> = None;
        let new_slot = Slot::default();
        // A new partition first: for as many units, it leaves more room than a larger one that everybody waits for.
        for at in (0..=self.slots.len()).rev() {
            let slot = self.slots.get(at).unwrap_or(&new_slot);
            let held_per_s = slot.rate_of(model);
            let mut others = Cow::Borrowed(slot);
            if held_per_s > 0.0 {
                others.to_mut().vacate(model);
            }
            let is_known = slot.units == 0 || (preference == Preference::Fresh && !slot.is_fresh);
            for added_units in u32::from(is_known)..=self.free_units {
                let enough = whole.as_ref().is_some_and(|place| place.added_units <= added_units);
                if enough && preference != Preference::Dense {
                    break;
                }
                let units = slot.units + added_units;
                if candidates[model].alone_per_s[units as usize - 1] < held_per_s + least {
                    continue;
                }
                let offer = others.offer(candidates, units, model, held_per_s + wanted_per_s);
                self.effort += offer.effort + EFFORT_OF_ASKING;
                let gained_per_s = offer.rate_per_s - held_per_s;
                if gained_per_s < least {
                    continue;
                }
                let is_whole = offer.rate_per_s >= held_per_s + wanted_per_s;
                let density = gained_per_s / f64::from(added_units).max(FREE_PLACE_UNITS);
                let place = Place { slot: at, added_units, gained_per_s, offer };
                if is_whole && preference != Preference::Dense {
                    whole = Some(place);
                } else if densest.as_ref().is_none_or(|(best, _)| density > *best) {
                    densest = Some((density, place));
                }
                if is_whole {
                    break;
                }
            }
        }
        whole.or(densest.map(|(_, place)| place))
    }

    /// Offers every model of a list, in order, a place wherever something changed since all of them were last offered one.
    /// The rest of the list is left out once that takes more than so much effort.
    pub(crate) fn sweep(&mut self, candidates: &[Candidate], models: &[usize], most_effort: usize) {
        self.effort = 0;
        for &model in models {
            if self.effort > most_effort {
                break;
            }
            self.insert(candidates, model, Preference::Fresh, 0.0);
        }
        self.slots.iter_mut().for_each(|slot| slot.is_fresh = false);
    }

    /// Takes a partition apart; its models miss what they had there.
    pub(crate) fn dissolve(&mut self, candidates: &[Candidate], slot: usize) -> Vec<usize> {
        let slot = self.slots.swap_remove(slot);
        self.free_units += slot.units;
        for seat in &slot.seats {
            self.missing_per_s[seat.model] += seat.rate_per_s;
            if !self.is_resident(seat.model) {
                self.free_bytes += candidates[seat.model].memory_bytes;
            }
        }
        slot.seats.iter().map(|seat| seat.model).collect()
    }

    /// Takes a model out of every partition; those that are empty then are gone.
    pub(crate) fn evict(&mut self, candidates: &[Candidate], model: usize) {
        if !self.is_resident(model) {
            return;
        }
        for slot in &mut self.slots {
            slot.vacate(model);
        }
        self.free_bytes += candidates[model].memory_bytes;
        self.missing_per_s[model] = candidates[model].asked_per_s;
        self.free_units += self
            .slots
            .iter()
            .filter(|slot| slot.seats.is_empty())
            .map(|slot| slot.units)
            .sum::<u32>();
        self.slots.retain(|slot| !slot.seats.is_empty());
    }

    /// Gives back the units that partitions do not need.
    pub(crate) fn trim(&mut self, candidates: &[Candidate]) {
        for slot in &mut self.slots {
            while slot.units > 1 && slot.resize(candidates, slot.units - 1) {
                self.free_units += 1;
            }
        }
    }

    pub(crate) fn is_resident(&self, model: usize) -> bool {
        self.slots.iter().any(|slot| slot.rate_of(model) > 0.0)
    }

    /// Whether every model has all it asks for.
    pub(crate) fn is_whole(&self) -> bool {
        self.missing_per_s.iter().all(|&missing| missing == 0.0)
    }

    /// Greater is better: first the weighted rate, then the share of what each asks for, then the units left.
    pub(crate) fn compare(&self, other: &Self, candidates: &[Candidate]) -> Ordering {
        let worth = |division: &Self| {
            let missing = division.missing_per_s.iter().zip(candidates);
            missing.fold((0.0, 0.0), |(worth, share), (missing, candidate)| {
                let given = candidate.asked_per_s - missing;
                let of_asked =
                    if candidate.asked_per_s > 0.0 { given / candidate.asked_per_s } else { 0.0 };
                (worth + given * candidate.weight, share + of_asked)
            })
        };
        let (mine, others) = (worth(self), worth(other));
        let by_worth = compare_rounded(mine.0, others.0).then(compare_rounded(mine.1, others.1));
        by_worth.then(self.free_units.cmp(&other.free_units))
    }
}

fn compare_rounded(left: f64, right: f64) -> Ordering {
    let is_rounding = (left - right).abs() <= WORTH_TOLERANCE * left.abs().max(right.abs());
    if is_rounding { Ordering::Equal } else { left.total_cmp(&right) }
}
