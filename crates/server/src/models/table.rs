//! The table of models: read by every request without a lock, and replaced as a whole when a model comes or goes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use weft_engine::{LaunchRecord, MixOutcome, ModelKey, Observer};
use weft_scheduler::UnitMask;

use super::entry::ModelEntry;
use crate::error::ServeError;
use crate::metrics::Metrics;

/// Models by name and version. As an engine's observer it counts what the engine runs of them.
#[derive(Debug, Default)]
pub struct ModelTable {
    models: ArcSwap<Models>,
    /// What the engine serves besides, which clients do not find, and what people see it as.
    guest: ArcSwapOption<(ModelKey, String)>,
    metrics: Metrics,
}

#[derive(Clone, Debug, Default)]
struct Models {
    /// The highest version is what is meant where none is named.
    by_name: HashMap<String, BTreeMap<u64, Arc<ModelEntry>>>,
    by_key: HashMap<ModelKey, Arc<ModelEntry>>,
    /// Models that come back when they are asked for.
    asleep: HashSet<String>,
}

impl Models {
    fn insert(&mut self, entry: Arc<ModelEntry>) {
        let versions = self.by_name.entry(entry.name.clone()).or_default();
        if let Some(before) = versions.insert(entry.version, entry.clone()) {
            self.by_key.remove(&before.key);
        }
        self.by_key.insert(entry.key, entry);
    }
}

impl ModelTable {
    /// The version of a model that is asked for; the latest where the version is empty.
    pub fn find(&self, name: &str, version: &str) -> Result<Arc<ModelEntry>, ServeError> {
        let models = self.models.load();
        let Some(versions) = models.by_name.get(name) else {
            return Err(match models.asleep.contains(name) {
                true => ServeError::Asleep(name.into()),
                false => ServeError::UnknownModel(name.into()),
            });
        };
        let entry = match version {
            "" => versions.last_key_value().map(|(_, entry)| entry),
            given => given.parse().ok().and_then(|number: u64| versions.get(&number)),
        };
        let unknown = || ServeError::UnknownVersion { model: name.into(), version: version.into() };
        entry.cloned().ok_or_else(unknown)
    }

    /// All versions of a model, in increasing order; empty where there is none.
    pub fn versions(&self, name: &str) -> Vec<Arc<ModelEntry>> {
        let models = self.models.load();
        models.by_name.get(name).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// Every version of every model, by name.
    pub fn all(&self) -> Vec<Arc<ModelEntry>> {
        let models = self.models.load();
        let mut all: Vec<_> = models.by_key.values().cloned().collect();
        all.sort_by(|a, b| (&a.name, a.version).cmp(&(&b.name, b.version)));
        all
    }

    /// The version that the engine knows by a key, where it is served.
    pub(crate) fn of_key(&self, key: ModelKey) -> Option<Arc<ModelEntry>> {
        self.models.load().by_key.get(&key).cloned()
    }

    /// What people see as the model that the engine knows by a key, where it is served.
    pub(crate) fn name_of(&self, key: ModelKey) -> Option<String> {
        let guest = self.guest.load();
        let guest = guest.as_ref().filter(|guest| guest.0 == key);
        guest.map(|guest| guest.1.clone()).or_else(|| Some(self.of_key(key)?.name.clone()))
    }

    /// The engine serves this besides from now on, or nothing.
    pub(crate) fn host(&self, guest: Option<(ModelKey, String)>) {
        self.guest.store(guest.map(Arc::new));
    }

    /// What is counted of all models.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Serves a version from now on, in place of one of the same number.
    pub fn insert(&self, entry: Arc<ModelEntry>) {
        self.metrics.admit([entry.name.as_str()]);
        self.models.rcu(|models| {
            let mut models = Models::clone(models);
            models.insert(entry.clone());
            models
        });
    }

    /// Serves exactly these versions from now on; models that are asleep come back when they are asked for.
    pub fn replace(
        &self,
        entries: impl IntoIterator<Item = Arc<ModelEntry>>,
        asleep: impl IntoIterator<Item = String>,
    ) {
        let mut models = Models { asleep: asleep.into_iter().collect(), ..Models::default() };
        entries.into_iter().for_each(|entry| models.insert(entry));
        self.metrics.admit(models.by_name.keys().map(String::as_str));
        self.models.store(Arc::new(models));
    }

    /// Serves a model no more, and says what was served of it.
    pub fn remove(&self, name: &str) -> Vec<Arc<ModelEntry>> {
        let removed = self.versions(name);
        self.models.rcu(|models| {
            let mut models = Models::clone(models);
            for entry in models.by_name.remove(name).into_iter().flatten() {
                models.by_key.remove(&entry.1.key);
            }
            models
        });
        removed
    }
}

impl Observer for ModelTable {
    fn launch_ended(&self, launch: &LaunchRecord) {
        if launch.is_fused {
            self.metrics.fused();
        }
        if launch.is_mixed {
            self.metrics.mixed();
        }
        self.metrics.recorder.launched(launch);
    }

    fn took_part(&self, model: ModelKey, rows: u32, launch: &LaunchRecord) {
        if let Some(entry) = self.models.load().by_key.get(&model) {
            entry.statistics.executed(rows, launch.took);
            self.metrics.of(&entry.name).executed(rows, launch);
        }
    }

    fn repartitioned(&self, partitions: &[UnitMask]) {
        self.metrics.repartitioned();
        let units: Vec<u32> = partitions.iter().map(|partition| partition.len()).collect();
        tracing::info!(?units, "repartitioned");
    }

    fn evicted(&self, model: ModelKey, length: Duration) {
        if let Some(entry) = self.models.load().by_key.get(&model) {
            self.metrics.of(&entry.name).evicted();
            let seconds = length.as_secs_f64();
            tracing::info!(
                model = entry.name,
                seconds,
                "served apart from its group, whose batches it holds up"
            );
        }
    }

    fn regulated(&self, models: &[(ModelKey, u32)], outcome: &MixOutcome) {
        let table = self.models.load();
        let name = |(key, count): &(ModelKey, u32)| {
            let name = table.by_key.get(key).map_or("a model", |entry| &entry.name);
            format!("{name} x {count}")
        };
        let models = models.iter().map(name).collect::<Vec<_>>().join(", ");
        let ms = |time: &Duration| time.as_secs_f64() * 1e3;
        match outcome {
            MixOutcome::Faster { latency, in_turns } => {
                let (latency_ms, in_turns_ms) = (ms(latency), ms(in_turns));
                tracing::info!(models, latency_ms, in_turns_ms, "a mix was regulated");
            }
            MixOutcome::NotFaster => {
                tracing::info!(models, "a mix was regulated to no avail");
            }
            MixOutcome::NoRoom { memory_bytes, free_bytes } => {
                tracing::info!(models, memory_bytes, free_bytes, "no room for a mix, run apart");
            }
            MixOutcome::Failed(why) => tracing::warn!(models, why, "a mix is not regulated"),
        }
    }

    fn preparation_failed(&self, why: &str) {
        tracing::warn!(why, "a partition cannot be prepared");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Signature;

    fn table(entries: &[(&str, u64)]) -> ModelTable {
        let table = ModelTable::default();
        for &(name, version) in entries {
            let signature = Signature { inputs: vec![], outputs: vec![], max_batch_size: 0 };
            let key = ModelKey::unused();
            table.insert(Arc::new(ModelEntry::new(name.into(), version, signature, key)));
        }
        table
    }

    #[test]
    fn evictions_are_counted_under_the_models_name() {
        let table = table(&[("a", 1), ("b", 1)]);
        let key = table.find("b", "").unwrap().key;
        table.evicted(key, Duration::from_secs(1));
        table.evicted(ModelKey::unused(), Duration::from_secs(1));
        let evictions = ["a", "b"].map(|name| table.metrics.of(name).counts().evictions);
        assert_eq!(evictions, [0, 1]);
    }

    #[test]
    fn the_latest_version_is_meant_where_none_is_named() {
        let table = table(&[("a", 2), ("a", 10), ("b", 1)]);
        assert_eq!(table.find("a", "").unwrap().version, 10);
        assert_eq!(table.find("a", "2").unwrap().version, 2);
        assert_eq!(table.all().len(), 3);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let table = table(&[("a", 1)]);
        assert!(matches!(table.find("b", ""), Err(ServeError::UnknownModel(name)) if name == "b"));
        for version in ["2", "latest", "-1", "1.0", " 1"] {
            let found = table.find("a", version);
            assert!(matches!(found, Err(ServeError::UnknownVersion { .. })), "{version}");
        }
        assert_eq!(table.remove("a").len(), 1);
        assert!(table.find("a", "").is_err() && table.all().is_empty());
    }

    #[test]
    fn what_is_asleep_is_not_unknown() {
        let awake = table(&[("a", 1)]);
        awake.replace(awake.all(), ["b".to_string()]);
        assert!(awake.find("a", "").is_ok());
        assert!(matches!(awake.find("b", ""), Err(ServeError::Asleep(name)) if name == "b"));
        awake.replace([], []);
        assert!(matches!(awake.find("b", ""), Err(ServeError::UnknownModel(_))));
        assert!(awake.all().is_empty());
    }

    #[test]
    fn a_version_takes_the_place_of_its_number() {
        let table = table(&[("a", 1), ("a", 1)]);
        assert_eq!(table.all().len(), 1);
    }
}
