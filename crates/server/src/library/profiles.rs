//! Profiles that are kept: of what was measured once, nothing is measured again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weft_scheduler::{Profile, ProfileSet, ProfiledDevice};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::grouping::Likeness;

/// What a profile is of, beside the device: all that decides how long models take. What they are called, where they lie and
/// what their weights hold does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProfileKey(String);

impl ProfileKey {
    /// Of each of the models that are alike, up to a batch.
    pub(super) fn of(likeness: &Likeness, largest_batch: u32) -> Self {
        Self(format!("{:032x}-{largest_batch}", hash(likeness)))
    }

    /// Of models that are alike, so many entries of which run in one launch.
    pub(super) fn of_group(likeness: &Likeness, entries: u32) -> Self {
        Self(format!("{:032x}-{entries}-fused", hash(likeness)))
    }
}

fn hash(likeness: &Likeness) -> u128 {
    xxh3_128(likeness.text().as_bytes())
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
    use weft_ir::Dimensions;
    use weft_scheduler::{ProfilePoint, Span};
    use weft_zoo::ZooOptions;

    use super::*;

    fn likeness(model: &str, seed: u64, precision: &str) -> Likeness {
        let graph = weft_zoo::build(model, &ZooOptions { seed, ..ZooOptions::default() }).unwrap();
        Likeness::of(&graph, &Dimensions::batch(1), precision)
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
    fn what_was_kept_is_found_for_models_that_are_alike() {
        let folder = tempfile::tempdir().unwrap();
        let key = |batch| ProfileKey::of(&likeness("tiny_resnet", 0, "f32"), batch);
        let store = || ProfileStore::new(device(), BTreeMap::new(), Some(folder.path()));
        let small = key(1);
        assert_eq!(store().get("model", &small), None);
        store().put("model", &small, &profile()).unwrap();
        assert_eq!(store().get("renamed", &small), Some(profile()));
        assert_eq!(store().get("model", &key(8)), None);
        let of = |model, seed, precision| ProfileKey::of(&likeness(model, seed, precision), 1);
        assert_eq!(store().get("model", &of("tiny_resnet", 0, "f16")), None);
        assert_eq!(store().get("model", &of("tiny_vgg", 0, "f32")), None);
        assert_eq!(store().get("other weights", &of("tiny_resnet", 1, "f32")), Some(profile()));
        assert_eq!(
            store().get("group", &ProfileKey::of_group(&likeness("tiny_resnet", 0, "f32"), 1)),
            None
        );
        let other = ProfiledDevice { units: 4, ..device() };
        let elsewhere = ProfileStore::new(other, BTreeMap::new(), Some(folder.path()));
        assert_eq!(elsewhere.get("model", &small), None);
    }

    #[test]
    fn what_is_given_wins_and_what_is_broken_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let key = ProfileKey::of(&likeness("tiny_resnet", 0, "f32"), 1);
        let given = BTreeMap::from([("model".to_string(), profile())]);
        let store = ProfileStore::new(device(), given, Some(folder.path()));
        assert_eq!(store.get("model", &key), Some(profile()));
        store.put("other", &key, &profile()).unwrap();
        fs::write(store.file(&key).unwrap(), "[device]\nname = ").unwrap();
        assert_eq!(store.get("other", &key), None);
    }
}
