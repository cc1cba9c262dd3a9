//! Memory of this machine that another process can open by its name.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FallocateFlags, fallocate};

/// Where POSIX shared memory has its files.
const FOLDER: &str = "/dev/shm";

/// How many regions this process has made.
static MADE: AtomicU64 = AtomicU64::new(0);

/// So much memory, which stays for as long as anybody has it open.
#[derive(Debug)]
pub(crate) struct Region {
    file: File,
}

/// The name of a region, under which it can be opened until this is dropped.
#[derive(Debug)]
pub(super) struct RegionName(String);

impl Region {
    /// Memory of this size under a name that nobody else has. All of it is there from the beginning: a write never finds
    /// that there is none left.
    pub(super) fn create(size_bytes: u64) -> io::Result<(Self, RegionName)> {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let name = RegionName(format!("weft-load-{process}-{number}-{}", since_epoch.as_nanos()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(name.path())?;
        fallocate(&file, FallocateFlags::empty(), 0, size_bytes)?;
        Ok((Self { file }, name))
    }

    pub(super) fn write(&self, offset_bytes: usize, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset_bytes as u64)
    }

    pub(super) fn read(&self, offset_bytes: usize, size_bytes: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; size_bytes];
        self.file.read_exact_at(&mut bytes, offset_bytes as u64)?;
        Ok(bytes)
    }
}

impl RegionName {
    /// As POSIX calls it, with the slash that some servers ask for.
    pub(super) fn key(&self) -> String {
        format!("/{}", self.0)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(FOLDER).join(&self.0)
    }
}

impl Drop for RegionName {
    fn drop(&mut self) {
        // Where it cannot be removed, it was not made.
        let _ = std::fs::remove_file(self.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_outlives_its_name() {
        let (region, name) = Region::create(100).unwrap();
        let (_, other) = Region::create(1).unwrap();
        assert_ne!(name.as_str(), other.as_str());
        let path = name.path();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 100);
        drop(name);
        assert!(!path.exists());
        region.write(90, b"0123456789").unwrap();
        assert_eq!(region.read(88, 4).unwrap(), b"\0\x0001");
        assert!(region.read(91, 10).is_err(), "it is not as long");
    }

    #[test]
    fn more_memory_than_there_is_is_refused_and_leaves_no_name() {
        let number = MADE.load(Ordering::Relaxed);
        assert!(Region::create(1 << 60).is_err());
        let own = |number| format!("weft-load-{}-{number}-", std::process::id());
        let is_of_it =
            |name: &str| (number..number + 4).any(|number| name.starts_with(&own(number)));
        let names = std::fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap());
        let large = names.filter(|entry| entry.metadata().is_ok_and(|about| about.len() > 1 << 40));
        let names = large.map(|entry| entry.file_name().into_string().unwrap());
        assert_eq!(names.filter(|name| is_of_it(name)).count(), 0);
    }
}
