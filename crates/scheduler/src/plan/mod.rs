//! Partition plans: how a device is divided among models so that every objective holds, or as much as can.

mod candidates;
mod check;
mod demand;
mod dice;
mod division;
#[cfg(test)]
mod exhaustive;
mod feasible;
mod partition_plan;
mod planner;
#[cfg(test)]
mod planner_properties;
mod predicted;
#[cfg(test)]
mod random_demands;
mod shortfall;
mod slot;

pub use check::PlanFault;
pub use demand::{DeviceFacts, ModelDemand, Slo};
pub use feasible::{HEADROOM, Turn, feasible, log_certainty, most_rate};
pub use partition_plan::{PartitionPlan, PlannedPartition, Share, Shortfall, ShortfallReason};
pub use planner::{Effort, plan_partitions};

pub(crate) use dice::Dice;
