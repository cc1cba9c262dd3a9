//! Models from files onto the device, each with its profile.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use weft_device::{Device, LoadedModel, UnitSet};
use weft_engine::{EngineModel, ModelKey, Profiling, measure};
use weft_ir::Dimensions;
use weft_scheduler::{Profile, ProfileSet, ServedModel};
use weft_server::{ModelEntry, Signature};

use super::sources::Source;
use crate::{model_file, progress};

/// How long each batch size on each number of units is measured.
const TIME_PER_CASE: Duration = Duration::from_millis(50);
/// What is expected of a model that nobody has said anything about.
const EXPECTED_PER_S: f64 = 1.0;

/// What models are loaded for.
pub(super) struct Loader<'a> {
    pub(super) device: &'a dyn Device,
    pub(super) units: &'a UnitSet,
    pub(super) dimensions: Dimensions,
    pub(super) largest_batch: u32,
    pub(super) profiles: Option<&'a ProfileSet>,
}

impl Loader<'_> {
    /// Loads one version of a model.
    pub(super) fn load(&self, source: &Source) -> Result<(EngineModel, Arc<ModelEntry>)> {
        self.try_load(source).with_context(|| source.file.display().to_string())
    }

    fn try_load(&self, source: &Source) -> Result<(EngineModel, Arc<ModelEntry>)> {
        let Source { name, version, file, agreed } = source;
        progress::show(format!("{name}: loading"));
        let graph = model_file::load(file)?;
        let loaded = self.device.load(name, &graph)?;
        let mut dimensions = self.dimensions.clone();
        let sizes = agreed.dimensions.iter().map(|(name, &size)| (name.clone(), size as usize));
        dimensions.named.extend(sizes);
        let profile = match self.profiles.and_then(|profiles| profiles.profiles.get(name)) {
            Some(profile) => profile.clone(),
            None => self.measured(name, &*loaded, &dimensions, agreed.max_batch)?,
        };
        let served = ServedModel {
            profile: Arc::new(profile),
            slo: agreed.slo,
            expected_per_s: agreed.rate_per_s.unwrap_or(EXPECTED_PER_S),
            weight: agreed.weight,
            priority: agreed.priority,
        };
        let signature = Signature::of(&graph, &dimensions, served.largest_batch() as usize)?;
        let key = ModelKey::unused();
        let entry = Arc::new(ModelEntry::new(name.clone(), *version, signature, key));
        Ok((EngineModel { key, loaded, dimensions, served }, entry))
    }

    fn measured(
        &self,
        name: &str,
        loaded: &dyn LoadedModel,
        dimensions: &Dimensions,
        max_batch: Option<u32>,
    ) -> Result<Profile> {
        let profiling = Profiling {
            units: self.units,
            dimensions,
            largest_batch: max_batch.unwrap_or(self.largest_batch),
            time_per_case: TIME_PER_CASE,
        };
        let show = |share| progress::show(format!("{name}: measuring, {:.0} %", share * 100.0));
        let profile = measure(self.device, loaded, &profiling, show)?;
        progress::clear();
        Ok(profile)
    }
}

/// The profiles of a file.
pub(super) fn read_profiles(path: &Path) -> Result<ProfileSet> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let set = ProfileSet::from_toml(&text);
    set.map_err(|problems| anyhow!("{}: not a file of profiles:\n{problems}", path.display()))
}
