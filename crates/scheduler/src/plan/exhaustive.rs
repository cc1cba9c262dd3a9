//! The best plan of a small instance by trying everything, and how far the planner is from it.
//!
//! Rates are tried in steps. For each size of partition, every combination of rates that some choice of batches serves is
//! found; then partitions of every size with every maximal combination are put together in every way, replicas included.

use crate::identity::ModelId;
use crate::plan::candidates::Candidate;
use crate::plan::demand::{DeviceFacts, ModelDemand};
use crate::plan::dice::Dice;
use crate::plan::feasible::{Turn, feasible};
use crate::plan::partition_plan::PartitionPlan;
use crate::plan::planner::{Effort, plan_partitions};
use crate::plan::random_demands::{Kind, RandomDemands};

/// Rates are tried in so many steps, by the number of models.
const STEPS: [usize; 5] = [0, 60, 30, 12, 5];

/// Combinations of rates: one number of steps for each model, as one index.
struct Combinations {
    models: usize,
    steps: usize,
}

impl Combinations {
    fn count(&self) -> usize {
        (self.steps + 1).pow(self.models as u32)
    }

    fn steps_of(&self, index: usize) -> Vec<usize> {
        let digit = |model: usize| index / (self.steps + 1).pow(model as u32) % (self.steps + 1);
        (0..self.models).map(digit).collect()
    }

    fn index_of(&self, steps: &[usize]) -> usize {
        steps.iter().rev().fold(0, |index, &step| index * (self.steps + 1) + step)
    }

    /// The combination with one step less or more of a model, where there is one.
    fn neighbour(&self, index: usize, model: usize, up: bool) -> Option<usize> {
        let stride = (self.steps + 1).pow(model as u32);
        let digit = index / stride % (self.steps + 1);
        match up {
            true => (digit < self.steps).then(|| index + stride),
            false => (digit > 0).then(|| index - stride),
        }
    }
}

/// The most weighted rate that any plan gives, in steps of the rates, and the fewest units that do it.
fn optimum(demands: &[ModelDemand<'_>], facts: &DeviceFacts) -> (f64, u32) {
    let candidates: Vec<Candidate> =
        demands.iter().map(|demand| Candidate::new(demand, facts)).collect();
    let combinations = Combinations { models: demands.len(), steps: STEPS[demands.len()] };
    let by_units: Vec<Vec<Vec<usize>>> =
        (1..=facts.units).map(|units| maximal(&candidates, &combinations, units)).collect();
    let mut reached = vec![vec![false; combinations.count()]; facts.units as usize + 1];
    reached[0][0] = true;
    let mut best = (0.0, 0);
    for used in 0..reached.len() {
        for index in 0..combinations.count() {
            if !reached[used][index] {
                continue;
            }
            let steps = combinations.steps_of(index);
            let worth = worth_in_memory(&candidates, facts, &steps, combinations.steps);
            if worth > best.0 * (1.0 + 1e-9) {
                best = (worth, used as u32);
            }
            for (more, choices) in (1..).zip(&by_units).take(reached.len() - 1 - used) {
                for choice in choices {
                    let sum: Vec<usize> = steps
                        .iter()
                        .zip(choice)
                        .map(|(a, b)| (a + b).min(combinations.steps))
                        .collect();
                    reached[used + more][combinations.index_of(&sum)] = true;
                }
            }
        }
    }
    best
}

/// Combinations of rates that one partition serves and that none it serves exceeds.
fn maximal(candidates: &[Candidate], combinations: &Combinations, units: u32) -> Vec<Vec<usize>> {
    let mut served = vec![false; combinations.count()];
    served[0] = true;
    for index in 1..served.len() {
        let mut less =
            (0..candidates.len()).filter_map(|model| combinations.neighbour(index, model, false));
        // Lower rates never break the rule: what is not served with less is not served with more.
        served[index] = less.all(|less| served[less])
            && any_batches_serve(
                candidates,
                &combinations.steps_of(index),
                combinations.steps,
                units,
            );
    }
    let exceeded = |index: usize| {
        (0..candidates.len()).any(|model| {
            combinations.neighbour(index, model, true).is_some_and(|more| served[more])
        })
    };
    (1..served.len())
        .filter(|&index| served[index] && !exceeded(index))
        .map(|index| combinations.steps_of(index))
        .collect()
}

fn any_batches_serve(
    candidates: &[Candidate],
    steps: &[usize],
    most_steps: usize,
    units: u32,
) -> bool {
    fn extend(turns: &mut Vec<Turn>, rest: &[(&Candidate, f64)], units: u32) -> bool {
        let Some(((candidate, rate), rest)) = rest.split_first() else {
            return feasible(turns);
        };
        (0..candidate.batches.len()).any(|batch_index| {
            turns.push(candidate.turn(batch_index, units, *rate));
            let serves = extend(turns, rest, units);
            turns.pop();
            serves
        })
    }
    let present: Vec<(&Candidate, f64)> = candidates
        .iter()
        .zip(steps)
        .filter(|&(_, &step)| step > 0)
        .map(|(candidate, &step)| {
            (candidate, candidate.asked_per_s * step as f64 / most_steps as f64)
        })
        .collect();
    extend(&mut Vec::new(), &present, units)
}

/// The most weighted rate of those models of a combination that fit into memory together.
fn worth_in_memory(
    candidates: &[Candidate],
    facts: &DeviceFacts,
    steps: &[usize],
    most_steps: usize,
) -> f64 {
    let worth_of = |chosen: usize| {
        let members =
            (0..steps.len()).filter(|model| chosen >> model & 1 == 1 && steps[*model] > 0);
        let (bytes, worth) = members.fold((0, 0.0), |(bytes, worth), model| {
            let candidate = &candidates[model];
            let rate = candidate.asked_per_s * steps[model] as f64 / most_steps as f64;
            (bytes + candidate.memory_bytes, worth + rate * candidate.weight)
        });
        if bytes <= facts.memory_bytes { worth } else { 0.0 }
    };
    (0..1 << steps.len()).map(worth_of).fold(0.0, f64::max)
}

pub(crate) fn weighted_rate(plan: &PartitionPlan, demands: &[ModelDemand<'_>]) -> f64 {
    (0u32..)
        .zip(demands)
        .map(|(model, demand)| plan.given_per_s(ModelId(model)) * demand.weight)
        .sum()
}

#[test]
fn the_planner_is_within_three_percent_of_the_optimum_on_small_instances() {
    let mut dice = Dice::new(2024);
    let (mut gaps, mut units_over, mut whole) = (Vec::new(), 0u32, 0u32);
    for instance in 0..400 {
        let kind = Kind {
            models: 1 + dice.below(4),
            units: 1 + dice.below(6) as u32,
            batches: vec![1, 3, 8],
            load: [0.05, 0.1, 0.2, 0.4, 0.8, 1.6][dice.below(6)],
        };
        let drawn = RandomDemands::draw(&kind, &mut dice);
        let demands = drawn.demands();
        let plan = plan_partitions(&demands, &drawn.facts, Effort::Thorough);
        assert_eq!(plan.check(&demands, &drawn.facts), [], "instance {instance}");
        let (best, fewest_units) = optimum(&demands, &drawn.facts);
        let given = weighted_rate(&plan, &demands);
        let gap = if best > 0.0 { 1.0 - given / best } else { 0.0 };
        if plan.shortfalls.is_empty() {
            whole += 1;
            units_over += plan.planned_units().saturating_sub(fewest_units);
        }
        gaps.push((gap.max(0.0), instance));
    }
    gaps.sort_by(|left, right| right.0.total_cmp(&left.0));
    let mean = gaps.iter().map(|(gap, _)| gap).sum::<f64>() / gaps.len() as f64;
    let summary = format!(
        "worst {:?}, mean gap {mean:.5}, {units_over} units over the fewest in {whole} plans that serve all",
        &gaps[..12]
    );
    assert!(gaps[0].0 <= 0.03, "{summary}");
    assert!(mean < 0.003, "{summary}");
    assert!(units_over * 50 <= whole, "{summary}");
    #[allow(clippy::print_stdout)]
    {
        println!("{summary}");
    }
}
