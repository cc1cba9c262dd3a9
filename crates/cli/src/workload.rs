//! Workloads: a file and the profiles that it names, read together, with all that is wrong with both in one message.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use clap::Args;
use weft_scheduler::document::Problems;
use weft_scheduler::{ProfileSet, ProfiledDevice};
use weft_simulator::World;

#[derive(Args)]
pub(crate) struct WorkloadOptions {
    /// The workload: a TOML file that names profiles, models, rates and objectives; see docs/simulation.md
    workload: PathBuf,
    /// Multiply all rates
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    scale: f64,
    /// Multiply all objectives: below 1 they are tighter
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    slo_scale: f64,
}

/// A workload that can be used.
pub(crate) struct Workload {
    /// The file, without its folders and its ending.
    pub(crate) name: String,
    pub(crate) world: World,
    pub(crate) device: ProfiledDevice,
}

impl WorkloadOptions {
    pub(crate) fn read(&self) -> Result<Workload> {
        for (factor, option) in [(self.scale, "--scale"), (self.slo_scale, "--slo-scale")] {
            ensure!(factor > 0.0 && factor.is_finite(), "{option} must be a number above 0");
        }
        let (world, device) = read(&self.workload)?;
        let mut world = world.scaled(self.scale);
        for slo in world.models.iter_mut().filter_map(|model| model.slo.as_mut()) {
            slo.latency = slo.latency * self.slo_scale;
        }
        let stem = self.workload.file_stem().unwrap_or_default();
        Ok(Workload { name: stem.to_string_lossy().into_owned(), world, device })
    }
}

/// The profiles lie where the workload says, seen from its own folder.
fn read(path: &Path) -> Result<(World, ProfiledDevice)> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => bail!("cannot read {}: {error}", path.display()),
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut device = None;
    let mut wrong_with_profiles = Vec::new();
    let world = World::from_toml(&text, |file| {
        let path = folder.join(file);
        match profiles(&path) {
            Ok(set) => {
                device = Some(set.device.clone());
                Some(set)
            }
            Err(wrong) => {
                wrong_with_profiles = wrong;
                None
            }
        }
    });
    match (world, device) {
        (Ok(world), Some(device)) => Ok((world, device)),
        (world, _) => {
            let mut wrong = world.err().map_or(Vec::new(), |problems| lines(path, &problems));
            wrong.extend(wrong_with_profiles);
            bail!("this workload cannot be used:\n{}", wrong.join("\n"))
        }
    }
}

fn profiles(path: &Path) -> Result<ProfileSet, Vec<String>> {
    let text = fs::read_to_string(path)
        .map_err(|error| vec![format!("{}: cannot be read: {error}", path.display())])?;
    ProfileSet::from_toml(&text).map_err(|problems| lines(path, &problems))
}

fn lines(path: &Path, problems: &Problems) -> Vec<String> {
    let problems = problems.as_slice().iter();
    problems.map(|problem| format!("{}, {problem}", path.display())).collect()
}
