//! From a partition plan to partitions on units: where they lie, and who may use them besides those they were planned for.

use crate::identity::ModelId;
use crate::plan::PartitionPlan;
use crate::policies::weft::pool::Pool;
use crate::served::ServedDevice;
use crate::unit_mask::UnitMask;

/// The share of the tightest slack among the models of a partition for which a guest may keep it busy.
const GUEST_SLACK_SHARE: f64 = 0.5;

/// A partition that is wanted, somewhere on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) units: u32,
    /// Models that it was planned for, and their largest batches.
    pub(super) residents: Vec<(ModelId, u32)>,
    /// Models that come when their own partitions are full.
    pub(super) guests: Vec<(ModelId, u32)>,
}

impl Wanted {
    fn models(&self) -> Vec<ModelId> {
        self.residents.iter().chain(&self.guests).map(|(model, _)| *model).collect()
    }
}

/// The partitions of a plan. Units that it leaves over are one partition more, for best effort.
pub(super) fn wanted(plan: &PartitionPlan, device: &ServedDevice) -> Vec<Wanted> {
    let mut all: Vec<Wanted> = plan
        .partitions
        .iter()
        .map(|partition| Wanted {
            units: partition.units,
            residents: partition.shares.iter().map(|share| (share.model, share.batch)).collect(),
            guests: Vec::new(),
        })
        .collect();
    if plan.best_effort_units > 0 {
        let units = plan.best_effort_units;
        all.push(Wanted { units, residents: Vec::new(), guests: Vec::new() });
    }
    for wanted in &mut all {
        wanted.guests = guests(wanted, device);
    }
    all
}

/// Every model that is not at home in a partition and could be answered in time there, at batches that do not keep those
/// that are at home waiting for long.
fn guests(wanted: &Wanted, device: &ServedDevice) -> Vec<(ModelId, u32)> {
    let slack_s = |&(model, batch): &(ModelId, u32)| {
        let model = &device.models[model.index()];
        let latency_s = model.profile.latency(batch, wanted.units).seconds();
        model.slo.map_or(f64::INFINITY, |slo| slo.latency.seconds() - latency_s)
    };
    let tightest_s = wanted.residents.iter().map(slack_s).fold(f64::INFINITY, f64::min);
    let models = (0u32..).zip(&device.models);
    models
        .filter(|(id, _)| !wanted.residents.iter().any(|(resident, _)| resident.0 == *id))
        .filter_map(|(id, model)| {
            let own_s = model.slo.map_or(f64::INFINITY, |slo| slo.latency.seconds());
            let most_s = own_s.min(tightest_s * GUEST_SLACK_SHARE);
            let latency_s = |batch| model.profile.latency(batch, wanted.units).seconds();
            let fits = |batch: &u32| latency_s(*batch) <= most_s;
            let batch = (1..=model.largest_batch()).rev().find(fits)?;
            Some((ModelId(id), batch))
        })
        .collect()
}

/// Chooses units for each wanted partition: those of an active partition of the same size with the most of its models ready,
/// else those of another that was prepared before, else the first that are free.
pub(super) fn place(
    wanted: &[Wanted],
    active: &[UnitMask],
    pool: &Pool,
    device_units: u32,
) -> Vec<UnitMask> {
    let mut places: Vec<Option<UnitMask>> = vec![None; wanted.len()];
    let mut matches: Vec<(usize, usize, UnitMask)> = Vec::new();
    for (at, partition) in wanted.iter().enumerate() {
        let same_size = active.iter().filter(|units| units.len() == partition.units);
        let models = partition.models();
        matches.extend(same_size.map(|&units| (pool.ready(units, &models), at, units)));
    }
    matches.sort_by_key(|&(ready, at, units)| (std::cmp::Reverse(ready), at, units));
    let mut free = UnitMask::range(0, device_units);
    for (_, at, units) in matches {
        if places[at].is_none() && units.without(free).is_empty() {
            places[at] = Some(units);
            free = free.without(units);
        }
    }
    let take = |at: usize, free: &mut UnitMask| {
        let partition: &Wanted = &wanted[at];
        let models = partition.models();
        let known = pool.within(*free, partition.units);
        let known = known.max_by_key(|&units| (pool.ready(units, &models), units));
        let units = known.unwrap_or_else(|| free.iter().take(partition.units as usize).collect());
        *free = free.without(units);
        units
    };
    places
        .iter()
        .enumerate()
        .map(|(at, place)| place.unwrap_or_else(|| take(at, &mut free)))
        .collect()
}
