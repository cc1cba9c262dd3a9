//! Profiles that are kept: of what was measured once, nothing is measured again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weft_ir::Dimensions;
use weft_scheduler::{Profile, ProfileSet, ProfiledDevice};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::grouping::Likeness;

/// Read at once of a file that is hashed.
const CHUNK_BYTES: usize = 1 << 20;

/// How a model is run, as far as that decides how long it takes.
pub(super) struct RunAs<'a> {
    /// Its open dimensions.
    pub(super) dimensions: &'a Dimensions,
    pub(super) largest_batch: u32,
    /// What it is computed at.
    pub(super) precision: &'a str,
}

/// What a profile is of, beside the device: a model's file, and how it is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProfileKey(String);

impl ProfileKey {
    /// Of a model's file, and how it is run. How long a model takes does not depend on where the file lies or what it is
    /// called.
    pub(super) fn of(file: &Path, run_as: &RunAs<'_>) -> io::Result<Self> {
        let mut hash = Xxh3::new();
        let mut reader = fs::File::open(file)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match io::Read::read(&mut reader, &mut chunk)? {
                0 => break,
                count => hash.update(&chunk[..count]),
            }
        }
        let RunAs { dimensions, largest_batch, precision } = run_as;
        hash.update(format!("{dimensions:?}").as_bytes());
        Ok(Self(format!("{:032x}-{largest_batch}-{precision}", hash.digest128())))
    }

    /// Of models that are alike, so many entries of which run in one launch.
    pub(super) fn of_group(likeness: &Likeness, entries: u32) -> Self {
        Self(format!("{:032x}-{entries}-group", xxh3_128(likeness.text().as_bytes())))
    }
}

/// Profiles of one device: those that were given, and those in a folder.
pub struct ProfileStore {
    device: ProfiledDevice,
    given: BTreeMap<String, Profile>,
    folder: Option<PathBuf>,
    /// What is measured from now on is of the device as it was named.
    is_current: bool,
}

impl ProfileStore {
    /// Profiles that are given by the names of models, and a folder for others; without one nothing is kept.
    pub fn new(
        device: ProfiledDevice,
        given: BTreeMap<String, Profile>,
        folder: Option<&Path>,
    ) -> Self {
        // What another device measured is of no use here.
        let mut hash = Xxh3::new();
        hash.update(format!("{} {} {}", device.name, device.units, device.unit).as_bytes());
        let folder = folder.map(|folder| folder.join(format!("{:016x}", hash.digest())));
        Self { device, given, folder, is_current: true }
    }

    /// The profile of a model, where there is one. A file that cannot be understood is as good as none.
    pub(super) fn get(&self, name: &str, key: &ProfileKey) -> Option<Profile> {
        if let Some(profile) = self.given.get(name) {
            return Some(profile.clone());
        }
        let text = fs::read_to_string(self.file(key)?).ok()?;
        let set = ProfileSet::from_toml(&text).ok()?;
        set.profiles.into_values().next()
    }

    /// The device takes other kernels than those that it was named for: what they measure is not kept under that name.
    pub(super) fn outdate(&mut self) {
        self.is_current = false;
    }

    /// Keeps a profile. A reader sees all of it or nothing.
    pub(super) fn put(&self, name: &str, key: &ProfileKey, profile: &Profile) -> io::Result<()> {
        let Some(file) = self.file(key).filter(|_| self.is_current) else { return Ok(()) };
        let profiles = BTreeMap::from([(name.to_string(), profile.clone())]);
        let set = ProfileSet { device: self.device.clone(), profiles };
        let partial = file.with_extension(format!("{}.partial", std::process::id()));
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&partial, set.to_toml())?;
        fs::rename(&partial, &file)
    }

    fn file(&self, key: &ProfileKey) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{}.toml", key.0)))
    }
}

#[cfg(test)]
mod tests {
    use weft_scheduler::{ProfilePoint, Span};

    use super::*;

    fn key(file: &Path, largest_batch: u32, precision: &str) -> ProfileKey {
        let dimensions = &Dimensions::batch(1);
        ProfileKey::of(file, &RunAs { dimensions, largest_batch, precision }).unwrap()
    }

    fn device() -> ProfiledDevice {
        ProfiledDevice {
            name: "a device".into(),
            units: 2,
            unit: "core".into(),
            bandwidth_bytes_per_s: 1e10,
            memory_bytes: 1 << 30,
        }
    }

    fn profile() -> Profile {
        let latency = Span::from_us(125.0);
        let point = ProfilePoint { batch: 1, units: 1, latency, dram_bytes: 1e6 };
        Profile::new(&[point], 1_000_000).unwrap()
    }

    #[test]
    fn what_was_kept_is_found_for_the_same_model_alone() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("model.onnx");
        fs::write(&model, b"weights").unwrap();
        let key = |batch| key(&model, batch, "f32");
        let store = || ProfileStore::new(device(), BTreeMap::new(), Some(folder.path()));
        let small = key(1);
        assert_eq!(store().get("model", &small), None);
        store().put("model", &small, &profile()).unwrap();
        assert_eq!(store().get("renamed", &small), Some(profile()));
        assert_eq!(store().get("model", &key(8)), None);
        assert_eq!(store().get("model", &self::key(&model, 1, "f16")), None);
        let other = ProfiledDevice { units: 4, ..device() };
        let elsewhere = ProfileStore::new(other, BTreeMap::new(), Some(folder.path()));
        assert_eq!(elsewhere.get("model", &small), None);
        fs::write(&model, b"other weights").unwrap();
        assert_eq!(store().get("model", &key(1)), None);
    }

    #[test]
    fn what_is_given_wins_and_what_is_broken_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("model.onnx");
        fs::write(&model, b"weights").unwrap();
        let key = key(&model, 1, "f32");
        let given = BTreeMap::from([("model".to_string(), profile())]);
        let store = ProfileStore::new(device(), given, Some(folder.path()));
        assert_eq!(store.get("model", &key), Some(profile()));
        store.put("other", &key, &profile()).unwrap();
        fs::write(store.file(&key).unwrap(), "[device]\nname = ").unwrap();
        assert_eq!(store.get("other", &key), None);
    }
}
