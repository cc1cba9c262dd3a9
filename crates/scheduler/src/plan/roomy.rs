//! Plans that leave room: where units are left over, they are divided so that every model could be asked for more.

use crate::plan::demand::{DeviceFacts, ModelDemand};
use crate::plan::partition_plan::{PartitionPlan, ShortfallReason};
use crate::plan::planner::{Effort, plan_partitions};

/// More room than this is of no use.
const MOST_ROOM: f64 = 4.0;

/// With less room than this, sharing what there is evenly is given up for what serves the most.
const LEAST_ROOM: f64 = 0.6;

/// The room is known to this share.
const PRECISION: f64 = 0.04;

/// A plan for the same multiple of what every model asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomyPlan {
    /// The plan.
    pub plan: PartitionPlan,
    /// The multiple: above 1, all get more than they ask for; below 1, less.
    pub room: f64,
}

/// The plan for the greatest multiple of all rates that is found to fit. Where only a small part fits, the plan for the
/// rates themselves, which serves the most that it can; its room is that of the model that gets the least.
pub fn plan_with_room(demands: &[ModelDemand<'_>], facts: &DeviceFacts) -> RoomyPlan {
    let planned = |room: f64| {
        let mut scaled = demands.to_vec();
        scaled.iter_mut().for_each(|demand| demand.rate_per_s *= room);
        plan_partitions(&scaled, facts, Effort::Quick)
    };
    let fits = |plan: &PartitionPlan| {
        plan.shortfalls.iter().all(|shortfall| is_hopeless(&shortfall.reason))
    };
    let as_asked = planned(1.0);
    let (mut best, mut low, mut high) = match fits(&as_asked) {
        true => (Some(as_asked.clone()), 1.0, MOST_ROOM * (1.0 + PRECISION)),
        false => (None, LEAST_ROOM / (1.0 + PRECISION), 1.0),
    };
    while high > low * (1.0 + PRECISION) {
        let room = f64::sqrt(low * high);
        let plan = planned(room);
        if fits(&plan) {
            (best, low) = (Some(plan), room);
        } else {
            high = room;
        }
    }
    match best {
        Some(plan) => RoomyPlan { plan, room: low },
        None => {
            let shares =
                as_asked.shortfalls.iter().filter(|shortfall| !is_hopeless(&shortfall.reason));
            let room = shares
                .map(|shortfall| shortfall.given_per_s / shortfall.asked_per_s)
                .fold(1.0, f64::min);
            RoomyPlan { plan: as_asked, room }
        }
    }
}

/// Whether no plan could do better.
fn is_hopeless(reason: &ShortfallReason) -> bool {
    matches!(reason, ShortfallReason::SloTooTight { .. })
}
