//! The batch that a model is meant to run at where requests keep coming.

use crate::served::ServedModel;

/// The largest batch that takes at most half of what was promised, and at least 1: a request that has just missed a batch
/// waits for that one and is answered with the next. Without a promise it is the largest that was measured.
pub(super) fn working_batch(model: &ServedModel, units: u32) -> u32 {
    let largest = model.largest_batch();
    let Some(slo) = model.slo else { return largest };
    let fits = |batch: &u32| model.profile.latency(*batch, units) * 2.0 <= slo.latency;
    (1..=largest).rev().find(fits).unwrap_or(1)
}

/// The share of its time that a partition of so many units is busy with a model at a rate.
pub(super) fn busy_share(model: &ServedModel, units: u32, rate_per_s: f64) -> f64 {
    let batch = working_batch(model, units);
    rate_per_s.max(0.0) * model.profile.latency(batch, units).seconds() / f64::from(batch)
}
