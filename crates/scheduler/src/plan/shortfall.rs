//! Why models get less than they ask for, and what would make them fit.

use crate::identity::ModelId;
use crate::plan::candidates::Candidate;
use crate::plan::check::RATE_TOLERANCE;
use crate::plan::demand::ModelDemand;
use crate::plan::division::Division;
use crate::plan::partition_plan::{Shortfall, ShortfallReason};

/// Every model that gets less than it asks for, in order.
pub(crate) fn shortfalls(
    demands: &[ModelDemand<'_>],
    candidates: &[Candidate],
    division: &Division,
) -> Vec<Shortfall> {
    let missing = division.missing_per_s.iter().copied().enumerate();
    missing
        .filter(|&(model, missing)| missing > candidates[model].asked_per_s * RATE_TOLERANCE)
        .map(|(model, missing)| {
            let candidate = &candidates[model];
            Shortfall {
                model: ModelId(u32::try_from(model).expect("models are counted in 32 bits")),
                asked_per_s: candidate.asked_per_s,
                given_per_s: (candidate.asked_per_s - missing).max(0.0),
                reason: reason(&demands[model], candidate, division, model),
            }
        })
        .collect()
}

fn reason(
    demand: &ModelDemand<'_>,
    candidate: &Candidate,
    division: &Division,
    model: usize,
) -> ShortfallReason {
    let units = u32::try_from(candidate.alone_per_s.len()).expect("units are counted in 32 bits");
    if units == 0 {
        return ShortfallReason::NotEnoughUnits { units_missing: 1 };
    }
    let missing_per_s = division.missing_per_s[model];
    let Some(units_needed) = units_needed(candidate, missing_per_s) else {
        let least_latency = demand.latency(1, units);
        return ShortfallReason::SloTooTight { least_latency };
    };
    if !division.is_resident(model) && candidate.memory_bytes > division.free_bytes {
        let bytes_missing = candidate.memory_bytes - division.free_bytes;
        return ShortfallReason::NotEnoughMemory { bytes_missing };
    }
    let units_missing = units_needed.saturating_sub(division.free_units).max(1);
    ShortfallReason::NotEnoughUnits { units_missing }
}

/// The fewest units in which a rate fits into partitions of the model's own: as many as needed of the size with the most
/// rate per unit, and the smallest for the rest. `None` where no partition of the device serves any rate.
fn units_needed(candidate: &Candidate, rate_per_s: f64) -> Option<u32> {
    let sizes = || (1u32..).zip(&candidate.alone_per_s).filter(|(_, rate)| **rate > 0.0);
    let per_unit = |&(units, rate): &(u32, &f64)| rate / f64::from(units);
    let (units, &each) =
        sizes().max_by(|left, right| per_unit(left).total_cmp(&per_unit(right)))?;
    let count = (rate_per_s / each).floor();
    let rest = rate_per_s - count * each;
    let last = if rest > 0.0 {
        sizes().find(|(_, rate)| **rate >= rest).map_or(units, |(units, _)| units)
    } else {
        0
    };
    Some((count as u32).saturating_mul(units).saturating_add(last))
}
