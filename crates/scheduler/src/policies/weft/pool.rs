//! Partitions that have been prepared: what is ready on which units, so that little has to be prepared again.

use std::collections::VecDeque;

use crate::identity::ModelId;
use crate::policy::{Action, PartitionId};
use crate::unit_mask::UnitMask;

/// The most partitions that are kept prepared: each holds a context and graphs on the device.
const MOST_KEPT: usize = 64;

/// A partition and the models that are ready on it, or will be when its preparations end.
#[derive(Clone, Debug)]
struct Pooled {
    id: PartitionId,
    units: UnitMask,
    ready: Vec<ModelId>,
    /// What each preparation that goes on makes ready besides, in the order in which they were asked for.
    pending: VecDeque<Vec<ModelId>>,
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

    /// The partition of these units, with what must be done besides what [goes on](Self::is_pending) before these models can run
    /// on it, if anything.
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
                let (ready, pending) = (Vec::new(), VecDeque::new());
                self.kept.push(Pooled { id, units, ready, pending, wanted: 0 });
                self.kept.len() - 1
            }
        };
        let pooled = &mut self.kept[place];
        pooled.wanted = self.wanted;
        let asked_for = || pooled.ready.iter().chain(pooled.pending.iter().flatten());
        let is_missing = |model: &ModelId| !asked_for().any(|other| other == model);
        let missing: Vec<ModelId> = models.iter().copied().filter(is_missing).collect();
        if missing.is_empty() {
            return (pooled.id, None);
        }
        pooled.pending.push_back(missing.clone());
        let prepare = Action::Prepare { partition: pooled.id, units, models: missing };
        (pooled.id, Some(prepare))
    }

    /// Whether a preparation goes on.
    pub(super) fn is_pending(&self, id: PartitionId) -> bool {
        self.kept.iter().any(|pooled| pooled.id == id && !pooled.pending.is_empty())
    }

    /// What was asked for first of what goes on is ready.
    pub(super) fn confirm(&mut self, id: PartitionId) {
        if let Some(pooled) = self.kept.iter_mut().find(|pooled| pooled.id == id) {
            pooled.ready.extend(pooled.pending.pop_front().into_iter().flatten());
        }
    }

    /// What was asked for first of what goes on could not be made ready.
    pub(super) fn withdraw(&mut self, id: PartitionId) {
        if let Some(pooled) = self.kept.iter_mut().find(|pooled| pooled.id == id) {
            pooled.pending.pop_front();
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_prepared() {
        let mut pool = Pool::default();
        let units = UnitMask::range(0, 4);
        let (id, first) = pool.want(units, &[ModelId(0), ModelId(1)]);
        assert!(matches!(first, Some(Action::Prepare { models, .. }) if models.len() == 2));
        let (same, second) = pool.want(units, &[ModelId(1), ModelId(2)]);
        assert!(matches!(second, Some(Action::Prepare { models, .. }) if models == [ModelId(2)]));
        assert_eq!((same, pool.want(units, &[ModelId(0), ModelId(2)]).1), (id, None));
        assert_ne!(pool.want(UnitMask::range(2, 4), &[ModelId(0)]).0, id);
    }

    #[test]
    fn what_could_not_be_made_ready_is_asked_for_again() {
        let mut pool = Pool::default();
        let units = UnitMask::range(0, 4);
        let (id, _) = pool.want(units, &[ModelId(0)]);
        pool.confirm(id);
        pool.want(units, &[ModelId(0), ModelId(1)]);
        pool.withdraw(id);
        let (_, again) = pool.want(units, &[ModelId(0), ModelId(1)]);
        assert!(matches!(again, Some(Action::Prepare { models, .. }) if models == [ModelId(1)]));
    }

    #[test]
    fn what_goes_on_is_known_until_all_of_it_was_answered() {
        let mut pool = Pool::default();
        let units = UnitMask::range(0, 4);
        let (id, _) = pool.want(units, &[ModelId(0)]);
        pool.want(units, &[ModelId(0), ModelId(1)]);
        assert_eq!(pool.want(units, &[ModelId(0), ModelId(1)]).1, None);
        pool.withdraw(id);
        assert!(pool.is_pending(id));
        pool.confirm(id);
        assert!(!pool.is_pending(id));
        let (_, again) = pool.want(units, &[ModelId(0), ModelId(1)]);
        assert!(matches!(again, Some(Action::Prepare { models, .. }) if models == [ModelId(0)]));
    }

    #[test]
    fn those_not_wanted_for_longest_are_discarded_unless_they_are_in_use() {
        let mut pool = Pool::default();
        let want = |pool: &mut Pool, first| pool.want(UnitMask::range(first, 1), &[ModelId(0)]).0;
        let ids: Vec<PartitionId> =
            (0..MOST_KEPT as u32 + 3).map(|first| want(&mut pool, first)).collect();
        want(&mut pool, 1);
        let mut actions = Vec::new();
        pool.trim(|id| id == ids[0], &mut actions);
        assert_eq!(actions, [2, 3, 4].map(|index: usize| Action::Discard(ids[index])));
    }
}
