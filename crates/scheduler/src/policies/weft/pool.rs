//! Partitions that have been prepared: what is ready on which units, so that little has to be prepared again.

use crate::identity::ModelId;
use crate::policy::{Action, PartitionId};
use crate::unit_mask::UnitMask;

/// The most partitions that are kept prepared: each holds a context and graphs on the device.
const MOST_KEPT: usize = 64;

/// A partition and the models that are ready on it, or will be when its preparation ends.
#[derive(Clone, Debug)]
pub(super) struct Pooled {
    pub(super) id: PartitionId,
    pub(super) units: UnitMask,
    pub(super) ready: Vec<ModelId>,
    /// When it was last wanted, as a count.
    wanted: u64,
}

/// All prepared partitions of one device.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    kept: Vec<Pooled>,
    next_id: u32,
    wanted: u64,
}

impl Pool {
    /// Sets of so many units, all within some, on which partitions have been prepared.
    pub(super) fn within(
        &self,
        units: UnitMask,
        count: u32,
    ) -> impl Iterator<Item = UnitMask> + '_ {
        let fits = move |mask: &UnitMask| mask.len() == count && mask.without(units).is_empty();
        self.kept.iter().map(|pooled| pooled.units).filter(fits)
    }

    /// The partition of these units, with what must be done before these models can run on it, if anything.
    pub(super) fn want(
        &mut self,
        units: UnitMask,
        models: &[ModelId],
    ) -> (PartitionId, Option<Action>) {
        self.wanted += 1;
        let place = match self.kept.iter().position(|pooled| pooled.units == units) {
            Some(place) => place,
            None => {
                let id = PartitionId(self.next_id);
                self.next_id += 1;
                self.kept.push(Pooled { id, units, ready: Vec::new(), wanted: 0 });
                self.kept.len() - 1
            }
        };
        let pooled = &mut self.kept[place];
        pooled.wanted = self.wanted;
        let missing: Vec<ModelId> =
            models.iter().copied().filter(|model| !pooled.ready.contains(model)).collect();
        if missing.is_empty() {
            return (pooled.id, None);
        }
        pooled.ready.extend(&missing);
        let prepare = Action::Prepare { partition: pooled.id, units, models: missing };
        (pooled.id, Some(prepare))
    }

    /// Discards the partitions that have not been wanted for longest and are not in use, while there are too many.
    pub(super) fn trim(&mut self, in_use: impl Fn(PartitionId) -> bool, actions: &mut Vec<Action>) {
        while self.kept.len() > MOST_KEPT {
            let idle = self.kept.iter().enumerate().filter(|(_, pooled)| !in_use(pooled.id));
            let Some((place, _)) = idle.min_by_key(|(_, pooled)| pooled.wanted) else { return };
            actions.push(Action::Discard(self.kept.swap_remove(place).id));
        }
    }
}
