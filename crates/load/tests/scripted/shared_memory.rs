//! What the scripted server knows of shared memory, and what it has seen there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard};

use weft_protocol::RegionRange;

/// Regions by name, and the places that outputs of requests under way go to.
#[derive(Default)]
pub(crate) struct Regions(Mutex<Known>);

#[derive(Default)]
struct Known {
    by_name: BTreeMap<String, File>,
    /// Where all that were ever registered had their names.
    paths: Vec<String>,
    in_use: BTreeSet<usize>,
    places: BTreeSet<usize>,
    /// How often a place was asked for while another request had it.
    shared: usize,
}

impl Regions {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap()
    }

    pub(crate) fn register(&self, name: &str, key: &str) {
        let path = format!("/dev/shm{key}");
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut known = self.lock();
        known.by_name.insert(name.to_string(), file);
        known.paths.push(path);
    }

    pub(crate) fn unregister(&self, name: &str) {
        self.lock().by_name.remove(name);
    }

    /// Names that are still there, of all that were ever registered.
    pub(crate) fn names_left(&self) -> Vec<String> {
        let is_left = |path: &&String| std::path::Path::new(path).exists();
        self.lock().paths.iter().filter(is_left).cloned().collect()
    }

    /// How many are registered.
    pub(crate) fn count(&self) -> usize {
        self.lock().by_name.len()
    }

    pub(crate) fn read(&self, range: &RegionRange) -> Vec<u8> {
        let mut bytes = vec![0; range.size_bytes];
        let known = self.lock();
        known.by_name[&range.region].read_exact_at(&mut bytes, range.offset_bytes as u64).unwrap();
        bytes
    }

    pub(crate) fn write(&self, range: &RegionRange, bytes: &[u8]) {
        let known = self.lock();
        known.by_name[&range.region].write_all_at(bytes, range.offset_bytes as u64).unwrap();
    }

    /// A request begins whose outputs go to this place.
    pub(crate) fn take(&self, place: usize) {
        let mut known = self.lock();
        let is_free = known.in_use.insert(place);
        known.shared += usize::from(!is_free);
        known.places.insert(place);
    }

    /// It has been answered, or is about to be.
    pub(crate) fn give_back(&self, place: usize) {
        self.lock().in_use.remove(&place);
    }

    /// How many different places were asked for, and how often one that was in use.
    pub(crate) fn places(&self) -> (usize, usize) {
        let known = self.lock();
        (known.places.len(), known.shared)
    }
}
