//! The device that is served on, and what loads models onto it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use weft_cuda::Precision;
use weft_device::{TunableDevice, UnitSet};
use weft_engine::{Engine, EngineDevice, KnownSchedules};
use weft_repository::{DeviceKind, DeviceSettings, Settings};
use weft_scheduler::{ProfileSet, ProfiledDevice, policies};
use weft_server::{Loader, ModelTable, ProfileStore};
use weft_tuner::tenant::HostDevice;

use super::Options;
use super::schedules::DatabaseSchedules;
use crate::commands::profile::bandwidth;
use crate::device::{DeviceName, DeviceOptions, OpenDevice, SharedDevice};
use crate::files;
use crate::progress;
use crate::regulation::Circumstances;
use crate::tuning::TunedKernels;

/// Of a machine's memory, what models may take where nothing is said: the rest is for everything else that runs there.
const DEFAULT_SHARE_OF_MEMORY: f64 = 0.8;

/// How kernels are chosen where nothing was tuned, as schedules of mixes are kept by.
const KERNELS: &str = "estimated";

/// What serves.
pub(super) struct Opened {
    pub(super) engine: Arc<Engine>,
    pub(super) loader: Loader,
    pub(super) budget_bytes: u64,
    pub(super) tunable: Arc<dyn TunableDevice>,
    pub(super) units: UnitSet,
}

pub(super) fn open(
    options: &Options,
    settings: &Settings,
    table: Arc<ModelTable>,
) -> Result<Opened> {
    let device = open_device(options, &settings.device)?;
    let tuned = options.tuning.apply_if_there(&device)?;
    let profiles = options.profiles.as_ref().or(settings.device.profiles.as_ref());
    let given = profiles.map(|path| read_profiles(path)).transpose()?;
    let bandwidth_bytes_per_s = match &given {
        Some(given) => given.device.bandwidth_bytes_per_s,
        None => bandwidth::bytes_per_s(None, &device)?,
    };
    let units = units(&device, settings.device.units)?;
    // On a GPU nobody is surprised by what has not been measured there.
    let is_usual = matches!(device, OpenDevice::Cpu(_));
    let is_regulated = settings.server.regulation.unwrap_or(is_usual) && !options.no_regulation;
    let schedules = is_regulated.then(|| -> Arc<dyn KnownSchedules> {
        let circumstances = Circumstances::of(&device, KERNELS);
        Arc::new(DatabaseSchedules { database: options.tuning.database(), circumstances })
    });
    let precision_of_device = device.precision();
    let SharedDevice { device, tunable, load } = device.into_shared();
    let about = device.description();
    let memory_bytes = about.memory_bytes.context("how much memory the device has is not known")?;
    let budget_bytes = settings
        .device
        .memory_budget_bytes
        .unwrap_or((memory_bytes as f64 * DEFAULT_SHARE_OF_MEMORY) as u64);
    let known = match options.policy {
        Some(policy) => policy,
        None => policies::named(&settings.device.policy).context("the policy is not known")?,
    };
    let tuned_in_words = tuned.map(TunedKernels::in_words).unwrap_or_default();
    let name = known.name;
    progress::note(format!(
        "on {}, {} units, policy {name}{tuned_in_words}",
        about.name,
        units.len()
    ));
    let on = EngineDevice {
        device: Arc::new(HostDevice::new(device.clone(), tunable.clone())),
        units: units.clone(),
        bandwidth_bytes_per_s,
        memory_bytes: budget_bytes,
        // The policies to compare with know no background.
        uses_background: known.name == "weft",
        schedules,
    };
    let engine = Engine::start(on, Box::new(move |served| known.make(served)), table)?;
    let profiled = ProfiledDevice {
        // What was measured with other kernels is of no use with these.
        name: format!(
            "{} {}{}",
            about.name,
            about.instruction_set,
            tuned.map(TunedKernels::mark).unwrap_or_default()
        ),
        units: u32::try_from(units.len())?,
        unit: about.unit,
        bandwidth_bytes_per_s,
        memory_bytes,
    };
    let given = given.map_or(BTreeMap::new(), |given| given.profiles);
    let folder = options.state.clone().or_else(cache_folder).map(|state| state.join("profiles"));
    let loader = Loader {
        profiles: ProfileStore::new(profiled, given, folder.as_deref()),
        device,
        load: Box::new(move |name, graph, agreed| load(name, graph, agreed.map(precision))),
        precision: precision_of_device.to_string(),
        units: units.clone(),
        dimensions: options.dimensions.sizes(1),
        largest_batch: options.max_batch,
        allows_groups: !options.no_groups,
    };
    Ok(Opened { engine: Arc::new(engine), loader, budget_bytes, tunable, units })
}

/// The device that the command line names, else that of the settings; where that is any, a GPU if there is one.
fn open_device(options: &Options, settings: &DeviceSettings) -> Result<OpenDevice> {
    let kind = match options.device {
        Some(name) => Some(name),
        None => match settings.kind {
            DeviceKind::Auto => None,
            DeviceKind::Cpu => Some(DeviceName::Cpu),
            DeviceKind::Cuda(number) => Some(DeviceName::Cuda(number)),
        },
    };
    let precision = options.precision.or(settings.precision.map(precision));
    if let Some(device) = kind {
        let precision =
            precision.filter(|_| device != DeviceName::Cpu || options.precision.is_some());
        return DeviceOptions { device, precision }.open();
    }
    let gpu = DeviceOptions { device: DeviceName::Cuda(0), precision }.open();
    gpu.or_else(|_| DeviceOptions { device: DeviceName::Cpu, precision: None }.open())
}

fn precision(setting: weft_repository::Precision) -> Precision {
    match setting {
        weft_repository::Precision::F16 => Precision::F16,
        weft_repository::Precision::Bf16 => Precision::Bf16,
        weft_repository::Precision::Tf32 => Precision::Tf32,
        weft_repository::Precision::F32 => Precision::F32,
    }
}

/// All units of the device, or the first so many.
fn units(device: &OpenDevice, count: Option<u32>) -> Result<UnitSet> {
    let all = device.units();
    let Some(count) = count else { return Ok(all) };
    let count = count as usize;
    if count > all.len() {
        bail!("{count} units asked for, the device has {}", all.len());
    }
    Ok(all.iter().take(count).collect())
}

/// The profiles of a file.
fn read_profiles(path: &Path) -> Result<ProfileSet> {
    let text = files::read_text(path).with_context(|| path.display().to_string())?;
    let set = ProfileSet::from_toml(&text);
    set.map_err(|problems| anyhow!("{}: not a file of profiles:\n{problems}", path.display()))
}

fn cache_folder() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    Some(named.map(PathBuf::from).or_else(home)?.join("weft"))
}
