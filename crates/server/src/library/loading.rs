//! One version of a model, from its file onto the device, with its profile.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use weft_device::{Device, DeviceError, LoadedModel, UnitSet};
use weft_engine::{
    EngineModel, ModelKey, ModelLimits, Profiling, ProfilingError, measure, measure_group,
};
use weft_ir::{Dimensions, Graph, GraphError};
use weft_repository::{Fingerprint, ModelSettings, Precision};
use weft_scheduler::{Profile, ServedModel};

use super::grouping::Likeness;
use super::profiles::{ProfileKey, ProfileStore};
use crate::models::{ModelEntry, Signature};

/// How long each batch on each number of units is measured.
const TIME_PER_CASE: Duration = Duration::from_millis(60);

/// What is expected of a model that nobody has said anything about.
const EXPECTED_PER_S: f64 = 1.0;

/// One version of one model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ModelVersion {
    pub(super) name: String,
    pub(super) version: u64,
}

/// A version that is to be served: its file, and what is agreed about it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) file: PathBuf,
    pub(super) fingerprint: Fingerprint,
    pub(super) agreed: ModelSettings,
}

impl Wanted {
    /// Whether a model that was loaded for another agreement serves this one as it is.
    pub(super) fn is_loaded_as(&self, other: &Self) -> bool {
        let how = |wanted: &Self| {
            let agreed = &wanted.agreed;
            (agreed.max_batch, agreed.dimensions.clone(), agreed.precision)
        };
        self.file == other.file && self.fingerprint == other.fingerprint && how(self) == how(other)
    }
}

/// A version that is on the device.
#[derive(Clone)]
pub(super) struct Resident {
    pub(super) wanted: Wanted,
    /// As it is served apart from all others.
    pub(super) model: EngineModel,
    pub(super) likeness: Likeness,
    pub(super) entry: Arc<ModelEntry>,
}

impl Resident {
    /// Of the device's memory, at its largest batch.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.model.served.profile.memory_bytes
    }

    /// The same model, to be prepared again: with the kernels that the device takes by then.
    pub(super) fn prepared_anew(&self) -> Self {
        let key = ModelKey::unused();
        let (model, entry) = (EngineModel { key, ..self.model.clone() }, self.entry.under(key));
        Self { model, entry: Arc::new(entry), ..self.clone() }
    }

    /// The same model under another agreement.
    pub(super) fn agreed_anew(&self, wanted: Wanted) -> Self {
        let profile = self.model.served.profile.clone();
        let (served, limits) = (served(profile, &wanted.agreed), limits(&wanted.agreed));
        let model = EngineModel { served, limits, ..self.model.clone() };
        Self { wanted, model, ..self.clone() }
    }
}

/// Why a version is not served.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadFailure {
    #[error(transparent)]
    File(#[from] weft_onnx::LoadError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error("it cannot be measured: {0}")]
    Profiling(#[from] ProfilingError),
    #[error("it takes {taken_bytes} bytes, and may take {limit_bytes}")]
    OverLimit { taken_bytes: u64, limit_bytes: u64 },
}

/// Loads a model onto the device: by its name, at the device's precision or another one.
pub type LoadModel = Box<
    dyn Fn(&str, &Graph, Option<Precision>) -> Result<Arc<dyn LoadedModel>, DeviceError>
        + Send
        + Sync,
>;

/// What models are loaded onto, and how.
pub struct Loader {
    /// The device.
    pub device: Arc<dyn Device>,
    /// The way onto it.
    pub load: LoadModel,
    /// What models are computed at that say nothing of it.
    pub precision: String,
    /// The units of it that are used.
    pub units: UnitSet,
    /// Of models that say nothing of their open dimensions.
    pub dimensions: Dimensions,
    /// Of models that say nothing of their largest batch.
    pub largest_batch: u32,
    /// What is known of how long models take.
    pub profiles: ProfileStore,
    /// Whether models that differ in their weights alone may be served as a group, where the settings say so.
    pub allows_groups: bool,
}

impl Loader {
    pub(super) fn load(
        &self,
        version: &ModelVersion,
        wanted: &Wanted,
    ) -> Result<Resident, LoadFailure> {
        let agreed = &wanted.agreed;
        let graph = weft_onnx::load(&wanted.file)?;
        let loaded = (self.load)(&version.name, &graph, agreed.precision)?;
        let mut dimensions = self.dimensions.clone();
        let named = agreed.dimensions.iter();
        dimensions.named.extend(named.map(|(name, &size)| (name.clone(), size as usize)));
        let largest = agreed.max_batch.unwrap_or(self.largest_batch).max(1);
        let likeness = Likeness::of(&graph, &dimensions, &self.precision_of(agreed));
        let profile = self.profile(version, &likeness, &*loaded, (&dimensions, largest))?;
        if let Some(limit_bytes) = agreed.memory_limit_bytes
            && profile.memory_bytes > limit_bytes
        {
            return Err(LoadFailure::OverLimit { taken_bytes: profile.memory_bytes, limit_bytes });
        }
        let served = served(Arc::new(profile), agreed);
        let signature = Signature::of(&graph, &dimensions, served.largest_batch() as usize)?;
        let key = ModelKey::unused();
        let entry = ModelEntry::new(version.name.clone(), version.version, signature, key);
        let limits = limits(agreed);
        Ok(Resident {
            wanted: wanted.clone(),
            model: EngineModel { key, loaded, dimensions, served, limits, group: None },
            likeness,
            entry: Arc::new(entry),
        })
    }

    fn precision_of(&self, agreed: &ModelSettings) -> String {
        agreed.precision.map_or(self.precision.clone(), |it| it.to_string())
    }

    pub(super) fn can_group(&self) -> bool {
        self.allows_groups && self.device.has_groups()
    }

    /// How long entries of models that are alike take in one launch: what is known, or else what is measured.
    pub(super) fn group_profile(
        &self,
        likeness: &Likeness,
        members: &[Arc<dyn LoadedModel>],
        (dimensions, entries): (&Dimensions, u32),
    ) -> Result<Profile, ProfilingError> {
        let name = format!("group of {}", members.first().map_or("none", |first| first.name()));
        let key = ProfileKey::of_group(likeness, entries);
        if let Some(profile) = self.profiles.get(&name, &key) {
            return Ok(profile);
        }
        tracing::info!(name, "measuring");
        let time_per_case = TIME_PER_CASE;
        let profiling =
            Profiling { units: &self.units, dimensions, largest_batch: entries, time_per_case };
        let profile = measure_group(&*self.device, members, &profiling, |_| {})?;
        self.keep(&name, &key, &profile);
        Ok(profile)
    }

    fn keep(&self, name: &str, key: &ProfileKey, profile: &Profile) {
        if let Err(error) = self.profiles.put(name, key, profile) {
            tracing::warn!(model = name, %error, "its profile cannot be kept");
        }
    }

    /// What is known, or else what is measured, which is known from then on.
    fn profile(
        &self,
        version: &ModelVersion,
        likeness: &Likeness,
        loaded: &dyn LoadedModel,
        (dimensions, largest_batch): (&Dimensions, u32),
    ) -> Result<Profile, LoadFailure> {
        let key = ProfileKey::of(likeness, largest_batch);
        if let Some(profile) = self.profiles.get(&version.name, &key) {
            return Ok(profile);
        }
        tracing::info!(model = version.name, version = version.version, "measuring");
        let time_per_case = TIME_PER_CASE;
        let profiling = Profiling { units: &self.units, dimensions, largest_batch, time_per_case };
        let profile = measure(&*self.device, loaded, &profiling, |_| {})?;
        self.keep(&version.name, &key, &profile);
        Ok(profile)
    }
}

fn limits(agreed: &ModelSettings) -> ModelLimits {
    ModelLimits { max_queue: agreed.max_queue as usize, timeout: agreed.timeout }
}

fn served(profile: Arc<Profile>, agreed: &ModelSettings) -> ServedModel {
    ServedModel {
        profile,
        slo: agreed.slo,
        expected_per_s: agreed.rate_per_s.unwrap_or(EXPECTED_PER_S),
        weight: agreed.weight,
        priority: agreed.priority,
        group: None,
    }
}
