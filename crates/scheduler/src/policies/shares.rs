//! Shares: a device's units divided among its models once and for all.

use crate::identity::ModelId;
use crate::policies::working_batch::busy_share;
use crate::served::ServedDevice;

/// A fixed partition in the making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) units: u32,
    pub(super) models: Vec<ModelId>,
}

impl Share {
    /// The share of its time that it is expected to be busy.
    fn busy(&self, device: &ServedDevice) -> f64 {
        let models = self.models.iter().map(|model| &device.models[model.index()]);
        models.map(|model| busy_share(model, self.units, model.expected_per_s)).sum()
    }
}

/// The models, those with the most work first.
pub(super) fn by_work(device: &ServedDevice) -> Vec<ModelId> {
    let mut models: Vec<ModelId> = (0..device.models.len() as u32).map(ModelId).collect();
    let work = |id: &ModelId| {
        let model = &device.models[id.index()];
        busy_share(model, 1, model.expected_per_s)
    };
    models.sort_by(|first, second| work(second).total_cmp(&work(first)));
    models
}

/// Adds each of these models to the share that has the most time left.
pub(super) fn add_to_idlest(shares: &mut [Share], models: &[ModelId], device: &ServedDevice) {
    for &model in models {
        let busy = |share: &&mut Share| share.busy(device);
        let idlest = shares.iter_mut().min_by(|a, b| busy(a).total_cmp(&busy(b)));
        idlest.expect("there are shares where there are models").models.push(model);
    }
}

/// Gives so many units, one by one, to the share that is busiest at that moment.
pub(super) fn give_to_busiest(shares: &mut [Share], units: u32, device: &ServedDevice) {
    for _ in 0..units {
        let busy = |share: &&mut Share| share.busy(device);
        if let Some(busiest) = shares.iter_mut().max_by(|a, b| busy(a).total_cmp(&busy(b))) {
            busiest.units += 1;
        }
    }
}

/// In the form that is served: every model at its largest batch, as lanes choose batches by deadline.
pub(super) fn served(shares: &[Share], device: &ServedDevice) -> Vec<(u32, Vec<(ModelId, u32)>)> {
    let batch = |&model: &ModelId| (model, device.models[model.index()].largest_batch());
    shares.iter().map(|share| (share.units, share.models.iter().map(batch).collect())).collect()
}
