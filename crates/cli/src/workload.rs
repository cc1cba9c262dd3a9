//! Workloads: a file and the profiles that it names, read together, with all that is wrong with both in one message.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use clap::Args;
use weft_scheduler::document::Problems;
use weft_scheduler::{ProfileSet, ProfiledDevice};
use weft_simulator::{Scenario, Trace, WorkloadFiles, World};

use crate::files;

#[derive(Args)]
pub(crate) struct WorkloadOptions {
    /// A TOML file of models, rates and objectives; see docs/simulation.md
    workload: PathBuf,
    /// Multiply all rates
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    scale: f64,
    /// Multiply all objectives
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    slo_scale: f64,
}

/// A workload that can be used.
pub(crate) struct Workload {
    /// The file, without its folders and its ending.
    pub(crate) name: String,
    /// All that is asked for, and one of the devices.
    pub(crate) world: World,
    pub(crate) device: ProfiledDevice,
    /// So many are there.
    pub(crate) devices: u32,
}

impl Workload {
    /// What runs where, in words.
    pub(crate) fn title(&self) -> String {
        let Self { name, device, devices, .. } = self;
        match devices {
            1 => format!("{name} on {}: {} units", device.name, device.units),
            _ => format!("{name} on {devices} x {}: {} units each", device.name, device.units),
        }
    }
}

impl WorkloadOptions {
    pub(crate) fn read(&self) -> Result<Workload> {
        for (factor, option) in [(self.scale, "--scale"), (self.slo_scale, "--slo-scale")] {
            ensure!(factor > 0.0 && factor.is_finite(), "{option} must be a number above 0");
        }
        let (scenario, device) = read(&self.workload)?;
        let mut world = scenario.world.scaled(self.scale);
        for slo in world.models.iter_mut().filter_map(|model| model.slo.as_mut()) {
            slo.latency = slo.latency * self.slo_scale;
        }
        let stem = self.workload.file_stem().unwrap_or_default();
        let name = stem.to_string_lossy().into_owned();
        Ok(Workload { name, world, device, devices: scenario.devices })
    }
}

fn read(path: &Path) -> Result<(Scenario, ProfiledDevice)> {
    let text = match files::read_text(path) {
        Ok(text) => text,
        Err(error) => bail!("cannot read {}: {error}", path.display()),
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut files = Files { folder, device: None, wrong: Vec::new() };
    let scenario = Scenario::from_toml(&text, &mut files);
    let Files { device, wrong: wrong_with_files, .. } = files;
    match (scenario, device) {
        (Ok(scenario), Some(device)) => Ok((scenario, device)),
        (scenario, _) => {
            let mut wrong = scenario.err().map_or(Vec::new(), |problems| lines(path, &problems));
            wrong.extend(wrong_with_files);
            bail!("this workload cannot be used:\n{}", wrong.join("\n"))
        }
    }
}

/// The files that a workload names lie where it says, seen from its own folder.
struct Files<'a> {
    folder: &'a Path,
    device: Option<ProfiledDevice>,
    wrong: Vec<String>,
}

impl Files<'_> {
    fn read<T>(&mut self, name: &str, interpret: fn(&str) -> Result<T, Problems>) -> Option<T> {
        let path = self.folder.join(name);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                self.wrong.push(format!("{}: cannot be read: {error}", path.display()));
                return None;
            }
        };
        let value = interpret(&text);
        value.map_err(|problems| self.wrong.extend(lines(&path, &problems))).ok()
    }
}

impl WorkloadFiles for Files<'_> {
    fn profiles(&mut self, name: &str) -> Option<ProfileSet> {
        let set = self.read(name, ProfileSet::from_toml)?;
        self.device = Some(set.device.clone());
        Some(set)
    }

    fn trace(&mut self, name: &str) -> Option<Trace> {
        self.read(name, Trace::from_csv)
    }
}

fn lines(path: &Path, problems: &Problems) -> Vec<String> {
    let problems = problems.as_slice().iter();
    problems.map(|problem| format!("{}, {problem}", path.display())).collect()
}
