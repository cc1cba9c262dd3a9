//! The partition planner: from demands and a device to the best partition plan that a bounded search finds.
//!
//! The device is thought to grow unit by unit. Each unit goes first to the models that still miss something, those with the
//! most worth per unit before others; then parts of the division are taken apart and put together again in other orders,
//! and what is better is kept. As soon as every model has what it asks for, the rest of the units is for best effort. A larger
//! device passes through every division of a smaller one, so more units never serve less.

use std::cmp::Ordering;

use crate::identity::ModelId;
use crate::plan::candidates::Candidate;
use crate::plan::demand::{DeviceFacts, ModelDemand};
use crate::plan::dice::Dice;
use crate::plan::division::{Division, Preference};
use crate::plan::partition_plan::{PartitionPlan, PlannedPartition, Share};
use crate::plan::shortfall::shortfalls;

/// How long something better is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A few milliseconds: for plans that are made while requests wait, and for tables of many.
    Quick,
    /// Up to a tenth of a second: for plans that a person asks for.
    Thorough,
}

impl Effort {
    /// Turns that are looked at in search of something better, for each unit that the device grows by. Small instances are
    /// searched more thoroughly in the same time.
    fn turns_per_unit(self, models: usize) -> usize {
        let for_few = match self {
            Effort::Quick => 30_000,
            Effort::Thorough => 800_000,
        };
        1_000 + for_few / models.max(1)
    }

    /// Attempts at something better for each unit, likewise: a limit for those that look at hardly anything.
    fn attempts_per_unit(self, models: usize) -> usize {
        let for_few = match self {
            Effort::Quick => 240,
            Effort::Thorough => 6_400,
        };
        20 + for_few / models.max(1)
    }
}

/// Turns that are looked at when everything is divided anew; what is worth least is left to the sweep that follows.
const EFFORT_OF_STARTING_OVER: usize = 25_000;

/// Turns that are looked at when all that miss something are offered what has changed.
const EFFORT_OF_SWEEPING: usize = 12_000;

/// The most partitions that one attempt takes apart: mostly a few, now and then many.
const FEW_DISSOLVED: usize = 3;
const MANY_DISSOLVED: usize = 6;

/// The most models without a place that one attempt tries to find a place for.
const MOST_NEWCOMERS: usize = 6;

/// Divides a device among models. The same input gives the same plan.
pub fn plan_partitions(
    demands: &[ModelDemand<'_>],
    facts: &DeviceFacts,
    effort: Effort,
) -> PartitionPlan {
    let candidates: Vec<Candidate> =
        demands.iter().map(|demand| Candidate::new(demand, facts)).collect();
    let mut division = Search::new(&candidates, facts, effort).run();
    division.trim(&candidates);
    let shortfalls = shortfalls(demands, &candidates, &division);
    let mut partitions: Vec<PlannedPartition> =
        division.slots.iter().map(|slot| planned(slot, &candidates)).collect();
    partitions.sort_by_key(|partition| std::cmp::Reverse(partition.units));
    PartitionPlan { partitions, best_effort_units: division.free_units, shortfalls }
}

fn planned(slot: &super::slot::Slot, candidates: &[Candidate]) -> PlannedPartition {
    let mut shares: Vec<Share> = slot
        .seats
        .iter()
        .map(|seat| {
            let candidate = &candidates[seat.model];
            Share {
                model: ModelId(u32::try_from(seat.model).expect("models are counted in 32 bits")),
                batch: candidate.batches[seat.batch_index],
                rate_per_s: seat.rate_per_s,
                busy: candidate.turn(seat.batch_index, slot.units, seat.rate_per_s).busy(),
            }
        })
        .collect();
    shares.sort_by_key(|share| share.model);
    PlannedPartition { units: slot.units, shares }
}

/// One search, from the first unit to the last.
struct Search<'a> {
    candidates: &'a [Candidate],
    most_units: u32,
    memory_bytes: u64,
    effort: Effort,
    dice: Dice,
    /// Worth per unit of each model at the present number of units; zero for those that cannot be served yet.
    worth_per_unit: Vec<f64>,
}

impl<'a> Search<'a> {
    fn new(candidates: &'a [Candidate], facts: &DeviceFacts, effort: Effort) -> Self {
        Self {
            candidates,
            most_units: facts.units,
            memory_bytes: facts.memory_bytes,
            effort,
            dice: Dice::new(1),
            worth_per_unit: Vec::new(),
        }
    }

    fn run(&mut self) -> Division {
        let mut best = Division::new(self.candidates, self.memory_bytes);
        for units in 1..=self.most_units {
            if best.is_whole() {
                best.free_units += self.most_units + 1 - units;
                return best;
            }
            best.free_units += 1;
            self.grow(&mut best, units);
        }
        best
    }

    fn grow(&mut self, best: &mut Division, units: u32) {
        self.worth_per_unit = self
            .candidates
            .iter()
            .map(|candidate| {
                candidate
                    .units_per_rate(units)
                    .map_or(0.0, |cost| candidate.weight.max(1e-9) / cost)
            })
            .collect();
        for model in self.missing_by_worth(best) {
            if best.free_units == 0 {
                break;
            }
            best.insert(self.candidates, model, Preference::Fresh, 0.0);
        }
        if units.is_power_of_two() {
            self.start_over(best, units);
        }
        best.effort = 0;
        let models = self.candidates.len();
        for _ in 0..self.effort.attempts_per_unit(models) {
            if best.is_whole() || best.effort >= self.effort.turns_per_unit(models) {
                break;
            }
            let attempt = self.attempt(best);
            let effort = attempt.effort;
            if attempt.compare(best, self.candidates) != Ordering::Less {
                *best = attempt;
            }
            best.effort = effort;
        }
        let missing = self.missing_by_worth(best);
        best.sweep(self.candidates, &missing, EFFORT_OF_SWEEPING);
    }

    /// Divides the present number of units anew, in case that growing to it has led astray.
    fn start_over(&mut self, best: &mut Division, units: u32) {
        let mut division = Division::new(self.candidates, self.memory_bytes);
        division.free_units = units;
        for model in self.missing_by_worth(&division) {
            if division.effort > EFFORT_OF_STARTING_OVER {
                break;
            }
            division.insert(self.candidates, model, Preference::Whole, 0.0);
        }
        if division.compare(best, self.candidates) == Ordering::Greater {
            *best = division;
        }
    }

    fn missing_by_worth(&mut self, division: &Division) -> Vec<usize> {
        let mut order = self.without_enough(division);
        self.sort_by_worth(&mut order, 0.0);
        order
    }

    /// Takes a part of a division apart and puts it together again in another order.
    fn attempt(&mut self, best: &Division) -> Division {
        let mut division = best.clone();
        let mut order = Vec::new();
        let newcomers = self.without_enough(best);
        for _ in 0..newcomers.len().min(1 + self.dice.below(MOST_NEWCOMERS)) {
            order.push(newcomers[self.dice.below(newcomers.len())]);
        }
        let most_dissolved = if self.dice.below(4) == 0 { MANY_DISSOLVED } else { FEW_DISSOLVED };
        let most_dissolved = division.slots.len().min(1 + self.dice.below(most_dissolved));
        for _ in 0..most_dissolved {
            let slot = self.dice.below(division.slots.len());
            order.extend(division.dissolve(self.candidates, slot));
        }
        if self.dice.below(2) == 0 && !division.slots.is_empty() {
            let slot = &division.slots[self.dice.below(division.slots.len())];
            let model = slot.seats[self.dice.below(slot.seats.len())].model;
            division.evict(self.candidates, model);
            order.push(model);
        }
        order.sort_unstable();
        order.dedup();
        let noise = [0.3, 2.0, 20.0][self.dice.below(3)];
        self.sort_by_worth(&mut order, noise);
        let modest = self.dice.below(3) == 0;
        for &model in &order {
            let preference =
                if self.dice.below(3) == 0 { Preference::Dense } else { Preference::Whole };
            let missed_share = if modest { self.dice.share() } else { 0.0 };
            division.insert(self.candidates, model, preference, missed_share);
        }
        if modest {
            for &model in &order {
                division.insert(self.candidates, model, Preference::Whole, 0.0);
            }
        }
        division
    }

    /// Models that miss something and could be served at all.
    fn without_enough(&self, division: &Division) -> Vec<usize> {
        let models = 0..self.candidates.len();
        models
            .filter(|&model| {
                division.missing_per_s[model] > 0.0 && self.worth_per_unit[model] > 0.0
            })
            .collect()
    }

    /// Sorts models by falling worth per unit, each multiplied by a random power of e up to the noise.
    fn sort_by_worth(&mut self, models: &mut Vec<usize>, noise: f64) {
        let mut keyed: Vec<(f64, usize)> = models
            .drain(..)
            .map(|model| (self.worth_per_unit[model].ln() + noise * self.dice.share(), model))
            .collect();
        keyed.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
        models.extend(keyed.into_iter().map(|(_, model)| model));
    }
}
