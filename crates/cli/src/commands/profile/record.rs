//! The file that profiles are written to, model by model, so that a run that is cut short leaves what it has found.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use weft_scheduler::{Profile, ProfileSet, ProfiledDevice};

use crate::files;

/// Profiles that are being measured, and their file where there is one.
pub(super) struct Record {
    file: Option<PathBuf>,
    /// What a reader of the file must know, as its first lines.
    head: String,
    set: ProfileSet,
}

/// How the profiles of one file are measured, for its reader.
pub(super) struct Method {
    /// What all profiles of one file must have in common.
    pub(super) common: String,
    /// What is said besides.
    pub(super) remarks: String,
}

/// A file that is there, and is to be added to.
pub(super) struct Earlier {
    head: String,
    set: ProfileSet,
}

impl Earlier {
    /// Reads a file; `None` where there is none.
    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let text =
            files::read_text(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::of_text(&text).with_context(|| path.display().to_string()).map(Some)
    }

    fn of_text(text: &str) -> Result<Self> {
        let head = text.split_inclusive('\n').take_while(|line| line.starts_with('#'));
        let set = ProfileSet::from_toml(text)
            .map_err(|problems| anyhow::anyhow!("not a file of profiles:\n{problems}"))?;
        Ok(Self { head: head.collect(), set })
    }

    /// What the file says of its device's memory.
    pub(super) fn bandwidth_bytes_per_s(&self) -> f64 {
        self.set.device.bandwidth_bytes_per_s
    }

    /// Refuses what would mix measurements of different devices, or different ways to measure.
    fn check(&self, device: &ProfiledDevice, method: &Method) -> Result<()> {
        let there = &self.set.device;
        let is_same =
            (&there.name, there.units, &there.unit) == (&device.name, device.units, &device.unit);
        ensure!(
            is_same,
            "its profiles are of {} with {} units (a unit is one {}), this device is {} with {} (one {})",
            there.name,
            there.units,
            there.unit,
            device.name,
            device.units,
            device.unit
        );
        ensure!(
            there.bandwidth_bytes_per_s == device.bandwidth_bytes_per_s,
            "it says {} GB/s, --bandwidth says {}",
            there.bandwidth_bytes_per_s * 1e-9,
            device.bandwidth_bytes_per_s * 1e-9
        );
        ensure!(
            self.head.starts_with(&method.common),
            "its profiles were measured in another way. It says\n{}where this run would say\n{}",
            self.head,
            method.common
        );
        Ok(())
    }
}

impl Record {
    /// A record of nothing yet, or of what a file has already. Where the file cannot be written, nothing is measured.
    pub(super) fn begin(
        file: Option<&Path>,
        earlier: Option<Earlier>,
        device: ProfiledDevice,
        method: &Method,
    ) -> Result<Self> {
        let (head, profiles) = match earlier {
            None => (format!("{}{}", method.common, method.remarks), BTreeMap::new()),
            Some(earlier) => {
                earlier.check(&device, method).with_context(|| {
                    file.map_or_else(String::new, |path| path.display().to_string())
                })?;
                (earlier.head, earlier.set.profiles)
            }
        };
        if let Some(path) = file {
            let partial = partial(path);
            fs::write(&partial, "").with_context(|| format!("cannot write {}", path.display()))?;
            let _ = fs::remove_file(&partial);
        }
        let set = ProfileSet { device, profiles };
        Ok(Self { file: file.map(Path::to_path_buf), head, set })
    }

    pub(super) fn has(&self, model: &str) -> bool {
        self.set.profiles.contains_key(model)
    }

    /// Adds a model, and writes the file anew; whoever reads it meanwhile sees the old one or the new one whole.
    pub(super) fn add(&mut self, model: String, profile: Profile) -> Result<()> {
        self.set.profiles.insert(model, profile);
        let Some(path) = &self.file else { return Ok(()) };
        let partial = partial(path);
        fs::write(&partial, format!("{}\n{}", self.head, self.set.to_toml()))
            .and_then(|()| fs::rename(&partial, path))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    pub(super) fn finish(self) -> ProfileSet {
        self.set
    }
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.partial", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use weft_scheduler::{ProfilePoint, Span};

    use super::*;

    /// A folder of its own, removed when the test ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("weft-profile-{test}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn file(&self) -> PathBuf {
            self.0.join("profiles.toml")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn device() -> ProfiledDevice {
        ProfiledDevice {
            name: "A device".into(),
            units: 4,
            unit: "core".into(),
            bandwidth_bytes_per_s: 2e10,
            memory_bytes: 1_000_000,
        }
    }

    fn method(common: &str) -> Method {
        Method { common: format!("# {common}\n"), remarks: "# By hand.\n".into() }
    }

    fn profile(us: f64) -> Profile {
        let point =
            ProfilePoint { batch: 1, units: 1, latency: Span::from_us(us), dram_bytes: 1e6 };
        Profile::new(&[point], 1_000_000).unwrap()
    }

    #[test]
    fn every_model_is_in_the_file_once_it_is_measured() {
        let folder = Folder::new("models");
        let file = folder.file();
        let mut record = Record::begin(Some(&file), None, device(), &method("a way")).unwrap();
        assert!(!file.exists(), "nothing was found yet");
        for (count, name) in ["b", "a"].into_iter().enumerate() {
            record.add(name.into(), profile(5.0)).unwrap();
            let written = Earlier::read(&file).unwrap().unwrap();
            assert_eq!(written.set.profiles.len(), count + 1);
            assert_eq!(written.head, "# a way\n# By hand.\n");
        }
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "no unfinished file is left");
    }

    #[test]
    fn a_second_run_adds_to_the_first_and_keeps_what_it_says() {
        let folder = Folder::new("second");
        let file = folder.file();
        let begin = |remarks: &str| {
            let method = Method { common: "# a way\n".into(), remarks: remarks.into() };
            Record::begin(Some(&file), Earlier::read(&file).unwrap(), device(), &method).unwrap()
        };
        begin("# The first.\n").add("a".into(), profile(5.0)).unwrap();
        let mut second = begin("# The second.\n");
        assert!(second.has("a") && !second.has("b"));
        second.add("b".into(), profile(7.0)).unwrap();
        let written = Earlier::read(&file).unwrap().unwrap();
        assert_eq!(written.set, second.finish());
        assert_eq!(written.set.profiles["a"], profile(5.0));
        assert_eq!(written.head, "# a way\n# The first.\n");
    }

    #[test]
    fn other_devices_and_other_ways_are_not_mixed() {
        let folder = Folder::new("mixed");
        let file = folder.file();
        let first = Record::begin(Some(&file), None, device(), &method("a way"));
        first.unwrap().add("a".into(), profile(5.0)).unwrap();
        let problem = |device, method: &Method| {
            let earlier = Earlier::read(&file).unwrap();
            let refused = Record::begin(Some(&file), earlier, device, method).err().unwrap();
            format!("{refused:#}")
        };
        let named = ProfiledDevice { name: "Another".into(), ..device() };
        assert!(problem(named, &method("a way")).contains("Another"));
        let larger = ProfiledDevice { units: 8, ..device() };
        assert!(problem(larger, &method("a way")).contains("with 8"));
        let faster = ProfiledDevice { bandwidth_bytes_per_s: 3e10, ..device() };
        assert!(problem(faster, &method("a way")).contains("30"));
        assert!(problem(device(), &method("other way")).contains("other way"));
    }

    #[test]
    fn a_file_that_cannot_be_written_or_read_is_refused_at_the_start() {
        let folder = Folder::new("unwritable");
        let file = folder.0.join("no").join("profiles.toml");
        assert!(Record::begin(Some(&file), None, device(), &method("a way")).is_err());
        fs::write(folder.file(), "# a way\n[device]\n").unwrap();
        assert!(Earlier::read(&folder.file()).is_err());
    }
}
