//! The metrics of all models, found by name without a lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

use super::model::ModelMetrics;
use super::recorder::Recorder;

/// Models that are counted apart. A name is kept after its model has gone, since counts must not fall; models past this
/// many are counted together with requests for models that there are not.
const MAX_MODELS: usize = 4096;

/// What is counted under no model's name is counted under this.
pub(crate) const UNKNOWN: &str = "";

/// All that is counted.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    models: ArcSwap<HashMap<String, Arc<ModelMetrics>>>,
    unknown: Arc<ModelMetrics>,
    repartitions: AtomicU64,
    fused_launches: AtomicU64,
    mixed_launches: AtomicU64,
    /// What the engine runs, while somebody wants to see it.
    pub(crate) recorder: Recorder,
}

impl Metrics {
    /// Counts models apart from now on.
    pub(crate) fn admit<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let present = self.models.load();
        let new: Vec<&str> =
            names.into_iter().filter(|name| !present.contains_key(*name)).collect();
        if new.is_empty() {
            return;
        }
        self.models.rcu(|models| {
            let mut models = HashMap::clone(models);
            for name in &new {
                if models.len() < MAX_MODELS && !models.contains_key(*name) {
                    models.insert((*name).into(), Arc::default());
                }
            }
            models
        });
    }

    /// The metrics of a model that is counted apart.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<ModelMetrics>> {
        self.models.load().get(name).cloned()
    }

    /// The metrics of a model, or of all that are not counted apart.
    pub(crate) fn of(&self, name: &str) -> Arc<ModelMetrics> {
        self.find(name).unwrap_or_else(|| self.unknown.clone())
    }

    /// Every model by name, and last what belongs to none.
    pub(crate) fn all(&self) -> Vec<(String, Arc<ModelMetrics>)> {
        let models = self.models.load();
        let mut all: Vec<_> = models.iter().map(|(name, it)| (name.clone(), it.clone())).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.push((UNKNOWN.into(), self.unknown.clone()));
        all
    }

    /// Entries of a group have run as one.
    pub(crate) fn fused(&self) {
        self.fused_launches.fetch_add(1, Ordering::Relaxed);
    }

    /// How often they did.
    pub(crate) fn fused_launches(&self) -> u64 {
        self.fused_launches.load(Ordering::Relaxed)
    }

    /// Batches of different models have run as one.
    pub(crate) fn mixed(&self) {
        self.mixed_launches.fetch_add(1, Ordering::Relaxed);
    }

    /// How often they did.
    pub(crate) fn mixed_launches(&self) -> u64 {
        self.mixed_launches.load(Ordering::Relaxed)
    }

    /// Partitions have got their units.
    pub(crate) fn repartitioned(&self) {
        self.repartitions.fetch_add(1, Ordering::Relaxed);
    }

    /// How often they did.
    pub(crate) fn repartitions(&self) -> u64 {
        self.repartitions.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metrics::Outcome;

    #[test]
    fn a_model_that_comes_back_goes_on_counting() {
        let metrics = Metrics::default();
        metrics.admit(["a"]);
        metrics.of("a").ended(Outcome::Ok, Duration::ZERO);
        metrics.admit(["a", "b"]);
        assert_eq!(metrics.of("a").counts().request_count(), 1);
        assert_eq!(metrics.of("b").counts().request_count(), 0);
    }

    #[test]
    fn clients_cannot_make_it_grow() {
        let metrics = Metrics::default();
        metrics.of("unheard").ended(Outcome::Refused, Duration::ZERO);
        assert_eq!(metrics.all().len(), 1);
        assert_eq!(metrics.of(UNKNOWN).counts().request_count(), 1);
        let names: Vec<String> = (0..MAX_MODELS + 5).map(|number| number.to_string()).collect();
        metrics.admit(names.iter().map(String::as_str));
        assert_eq!(metrics.all().len(), MAX_MODELS + 1);
    }
}
