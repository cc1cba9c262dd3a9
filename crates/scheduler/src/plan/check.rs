//! Whether a partition plan keeps every invariant, said fault by fault.

use crate::identity::ModelId;
use crate::plan::demand::{DeviceFacts, ModelDemand};
use crate::plan::feasible::{Turn, feasible, log_certainty};
use crate::plan::partition_plan::{PartitionPlan, PlannedPartition, Share};

/// The relative difference between rates that is rounding and not a mistake.
pub(crate) const RATE_TOLERANCE: f64 = 1e-6;

/// An invariant that a plan breaks. Partitions are named by their place in the plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum PlanFault {
    #[error("{planned} units are planned on a device of {units}")]
    Units { planned: u32, units: u32 },
    #[error("{needed} bytes are needed on a device of {memory_bytes}")]
    Memory { needed: u64, memory_bytes: u64 },
    #[error("partition {partition} has no units or no shares")]
    Empty { partition: usize },
    #[error(
        "partition {partition} has a share of model {model}, which is unknown, best effort or there already"
    )]
    WrongModel { partition: usize, model: u32 },
    #[error(
        "partition {partition} gives model {model} a batch, a rate or a busy time that it cannot have"
    )]
    WrongShare { partition: usize, model: u32 },
    #[error("partition {partition} does not keep the objectives of its models")]
    Objectives { partition: usize },
    #[error(
        "model {model} asks for {asked_per_s} items per second and is given {given_per_s}, and the shortfalls say otherwise"
    )]
    Rates { model: u32, asked_per_s: f64, given_per_s: f64 },
}

impl PartitionPlan {
    /// Every invariant that the plan breaks for these demands on this device; none for a plan that may be used.
    pub fn check(&self, demands: &[ModelDemand<'_>], facts: &DeviceFacts) -> Vec<PlanFault> {
        let mut faults = Vec::new();
        let planned = self.planned_units().saturating_add(self.best_effort_units);
        if planned != facts.units {
            faults.push(PlanFault::Units { planned, units: facts.units });
        }
        for (at, partition) in self.partitions.iter().enumerate() {
            check_partition(at, partition, demands, &mut faults);
        }
        self.check_memory(demands, facts, &mut faults);
        self.check_rates(demands, &mut faults);
        faults
    }

    fn check_memory(
        &self,
        demands: &[ModelDemand<'_>],
        facts: &DeviceFacts,
        faults: &mut Vec<PlanFault>,
    ) {
        let mut models: Vec<ModelId> = self.shares().map(|share| share.model).collect();
        models.sort_unstable();
        models.dedup();
        let sizes = models.iter().filter_map(|model| demands.get(model.index()));
        let needed =
            sizes.fold(0u64, |sum, demand| sum.saturating_add(demand.profile.memory_bytes));
        if needed > facts.memory_bytes {
            faults.push(PlanFault::Memory { needed, memory_bytes: facts.memory_bytes });
        }
    }

    fn check_rates(&self, demands: &[ModelDemand<'_>], faults: &mut Vec<PlanFault>) {
        for (model, demand) in (0u32..).zip(demands) {
            let (asked_per_s, given_per_s) =
                (demand.promised_per_s(), self.given_per_s(ModelId(model)));
            let room = asked_per_s * RATE_TOLERANCE;
            let close = |left: f64, right: f64| (left - right).abs() <= room;
            let mut said =
                self.shortfalls.iter().filter(|shortfall| shortfall.model == ModelId(model));
            let agrees = match (said.next(), said.next()) {
                (None, None) => close(given_per_s, asked_per_s),
                (Some(shortfall), None) => {
                    close(shortfall.asked_per_s, asked_per_s)
                        && close(shortfall.given_per_s, given_per_s)
                        && given_per_s < asked_per_s
                }
                _ => false,
            };
            if !agrees {
                faults.push(PlanFault::Rates { model, asked_per_s, given_per_s });
            }
        }
    }
}

fn check_partition(
    at: usize,
    partition: &PlannedPartition,
    demands: &[ModelDemand<'_>],
    faults: &mut Vec<PlanFault>,
) {
    if partition.units == 0 || partition.shares.is_empty() {
        faults.push(PlanFault::Empty { partition: at });
        return;
    }
    let mut turns: Vec<Turn> = Vec::new();
    for (place, share) in partition.shares.iter().enumerate() {
        let model = share.model.0;
        let twice = partition.shares[..place].iter().any(|other| other.model == share.model);
        let Some(turn) = demands
            .get(share.model.index())
            .and_then(|demand| turn_of(share, partition.units, demand))
        else {
            faults.push(PlanFault::WrongModel { partition: at, model });
            continue;
        };
        if twice {
            faults.push(PlanFault::WrongModel { partition: at, model });
        }
        let fits = (1..=demands[share.model.index()].max_batch.max(1)).contains(&share.batch)
            && share.rate_per_s.is_finite()
            && share.rate_per_s > 0.0
            && (turn.busy() - share.busy).abs() <= RATE_TOLERANCE;
        if !fits {
            faults.push(PlanFault::WrongShare { partition: at, model });
        }
        turns.push(turn);
    }
    if !feasible(&turns) {
        faults.push(PlanFault::Objectives { partition: at });
    }
}

pub(crate) fn turn_of(share: &Share, units: u32, demand: &ModelDemand<'_>) -> Option<Turn> {
    let slo = demand.slo?;
    Some(Turn {
        rate_per_s: share.rate_per_s,
        batch: f64::from(share.batch),
        latency_s: demand.latency(share.batch, units).seconds(),
        slo_s: slo.latency.seconds(),
        log_certainty: log_certainty(slo.percentile),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::dice::Dice;
    use crate::plan::planner::{Effort, plan_partitions};
    use crate::plan::random_demands::{Kind, RandomDemands};

    fn drawn() -> RandomDemands {
        let kind = Kind { models: 4, units: 6, batches: vec![1, 2, 4], load: 0.05 };
        let mut drawn = RandomDemands::draw(&kind, &mut Dice::new(23));
        drawn.facts.memory_bytes = u64::MAX;
        drawn
    }

    /// Breaks a good plan, and says what is found.
    fn faults(breaking: impl FnOnce(&mut PartitionPlan)) -> Vec<PlanFault> {
        let drawn = drawn();
        let demands = drawn.demands();
        let mut plan = plan_partitions(&demands, &drawn.facts, Effort::Quick);
        assert_eq!(plan.check(&demands, &drawn.facts), []);
        assert!(!plan.partitions.is_empty() && plan.shortfalls.is_empty());
        breaking(&mut plan);
        plan.check(&demands, &drawn.facts)
    }

    #[test]
    fn every_way_to_break_a_plan_is_found() {
        let first = |plan: &mut PartitionPlan| plan.partitions[0].shares[0];
        let units = faults(|plan| plan.best_effort_units += 1);
        assert!(matches!(units[..], [PlanFault::Units { planned: 7, units: 6 }]), "{units:?}");
        let empty = faults(|plan| plan.partitions[0].shares.clear());
        assert!(empty.contains(&PlanFault::Empty { partition: 0 }), "{empty:?}");
        let unknown = faults(|plan| plan.partitions[0].shares[0].model = ModelId(99));
        assert!(unknown.contains(&PlanFault::WrongModel { partition: 0, model: 99 }));
        let twice = faults(|plan| {
            let share = first(plan);
            plan.partitions[0].shares.push(share);
        });
        assert!(twice.iter().any(|fault| matches!(fault, PlanFault::WrongModel { .. })));
        let batch = faults(|plan| plan.partitions[0].shares[0].batch = 5);
        assert!(batch.iter().any(|fault| matches!(fault, PlanFault::WrongShare { .. })));
        let busy = faults(|plan| plan.partitions[0].shares[0].busy += 0.01);
        assert!(busy.iter().any(|fault| matches!(fault, PlanFault::WrongShare { .. })));
        let overloaded = faults(|plan| {
            let share = &mut plan.partitions[0].shares[0];
            (share.rate_per_s, share.busy) = (share.rate_per_s * 1e3, share.busy * 1e3);
        });
        assert!(overloaded.contains(&PlanFault::Objectives { partition: 0 }), "{overloaded:?}");
        assert!(overloaded.iter().any(|fault| matches!(fault, PlanFault::Rates { .. })));
        let gone = faults(|plan| plan.partitions.clear());
        assert!(gone.iter().any(|fault| matches!(fault, PlanFault::Rates { .. })));
    }

    #[test]
    fn models_that_do_not_fit_the_memory_together_are_found() {
        let drawn = drawn();
        let demands = drawn.demands();
        let plan = plan_partitions(&demands, &drawn.facts, Effort::Quick);
        let facts = DeviceFacts { memory_bytes: 1, ..drawn.facts };
        let faults = plan.check(&demands, &facts);
        assert!(matches!(faults[..], [PlanFault::Memory { memory_bytes: 1, .. }]), "{faults:?}");
    }
}
