//! Plans of one model that were made before: another partition of the same size, as a change of layout brings several of, needs
//! the same ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use weft_device::DeviceError;

use crate::plan::ExecutionPlan;

/// Plans that are kept of one model: a group has one for each number of entries, on each size of partition.
const MAX_KEPT: usize = 16;

/// What a plan of a model depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlanKey {
    /// Of its required inputs, in order.
    pub(crate) shapes: Vec<Vec<usize>>,
    /// Of the partition.
    pub(crate) sm_count: u32,
    /// Of a group; none where the model is by itself.
    pub(crate) entries: Option<usize>,
    /// Of the candidates that were found to be fastest.
    pub(crate) choices: u64,
}

/// A plan that may be used again.
pub(crate) struct KnownPlan {
    pub(crate) plan: ExecutionPlan,
    structure: OnceLock<u128>,
}

impl KnownPlan {
    /// Equal for plans that differ in the content of their weights alone.
    pub(crate) fn structure(&self) -> u128 {
        *self.structure.get_or_init(|| self.plan.structure())
    }
}

/// The plans that were used last.
#[derive(Default)]
pub(crate) struct KnownPlans(Mutex<VecDeque<(PlanKey, Arc<KnownPlan>)>>);

impl KnownPlans {
    /// The plan of a key, which `make` makes unless it is known. Who asks at once for the same may make it twice.
    pub(crate) fn get_or_make(
        &self,
        key: PlanKey,
        make: impl FnOnce() -> Result<ExecutionPlan, DeviceError>,
    ) -> Result<Arc<KnownPlan>, DeviceError> {
        let known = self.take(&key);
        let plan = match known {
            Some(plan) => plan,
            None => Arc::new(KnownPlan { plan: make()?, structure: OnceLock::new() }),
        };
        let mut plans = self.lock();
        if plans.len() >= MAX_KEPT {
            plans.pop_front();
        }
        plans.push_back((key, plan.clone()));
        Ok(plan)
    }

    /// Lets go of all of them, and with that of weights that nothing else uses.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    fn take(&self, key: &PlanKey) -> Option<Arc<KnownPlan>> {
        let mut plans = self.lock();
        let place = plans.iter().position(|(known, _)| known == key)?;
        plans.remove(place).map(|(_, plan)| plan)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(PlanKey, Arc<KnownPlan>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn key(sm_count: u32) -> PlanKey {
        PlanKey { shapes: vec![vec![1, 8]], sm_count, entries: None, choices: 0 }
    }

    #[test]
    fn what_was_used_last_is_made_once() {
        let (plans, made) = (KnownPlans::default(), Cell::new(0));
        let get = |key: PlanKey| {
            let make = || {
                made.set(made.get() + 1);
                Ok(ExecutionPlan::default())
            };
            plans.get_or_make(key, make).unwrap()
        };
        let first = get(key(8));
        assert!(Arc::ptr_eq(&first, &get(key(8))));
        for other in [
            PlanKey { entries: Some(1), ..key(8) },
            PlanKey { choices: 1, ..key(8) },
            PlanKey { shapes: vec![vec![2, 8]], ..key(8) },
        ] {
            assert!(!Arc::ptr_eq(&first, &get(other)));
        }
        assert_eq!(made.get(), 4);
        // One that is used again and again stays, whatever comes besides.
        for sms in 100..100 + 2 * MAX_KEPT as u32 {
            get(key(sms));
            assert!(Arc::ptr_eq(&first, &get(key(8))));
        }
        assert_eq!(plans.lock().len(), MAX_KEPT);
    }

    #[test]
    fn what_cannot_be_made_is_not_kept() {
        let plans = KnownPlans::default();
        let failed = plans.get_or_make(key(8), || Err(DeviceError::Failed("no".to_string())));
        assert!(failed.is_err() && plans.lock().is_empty());
    }
}
