//! System shared memory: files under `/dev/shm` that clients register by name, and that tensors are read from and written
//! to.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use weft_ir::{DataType, MAX_TENSOR_BYTES, Tensor};
use weft_protocol::{ProtocolError, RegionRange, raw_bytes, tensor_from_raw};

use crate::error::ServeError;
use crate::tenants::{Caller, RegionName};

/// Where POSIX shared memory has its files.
const FOLDER: &str = "/dev/shm";

/// Why a region cannot be registered or used.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// There is none of that name.
    #[error("no shared memory region '{0}' is registered")]
    Unknown(String),
    /// There is one of that name already.
    #[error("a shared memory region '{0}' is registered already")]
    Taken(String),
    /// As many as are kept are registered.
    #[error("{limit} shared memory regions are registered, and no more are kept")]
    TooMany {
        /// How many are kept.
        limit: usize,
    },
    /// The key is no name of shared memory.
    #[error("'{0}' is no key of shared memory: it is a name without further slashes")]
    Key(String),
    /// The memory cannot be opened, read or written.
    #[error("shared memory '{key}': {source}")]
    Failed {
        /// The key that it was registered with.
        key: String,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// A part lies outside the whole.
    #[error("{wanted} lies outside the {size_bytes} bytes of {of}")]
    OutOfBounds {
        /// What was asked for.
        wanted: String,
        /// How much there is.
        size_bytes: u64,
        /// Of what.
        of: String,
    },
    /// An output takes another number of bytes than it was given.
    #[error("output '{name}' takes {needed_bytes} bytes, its shared memory has {given_bytes}")]
    TooSmall {
        /// The output.
        name: String,
        /// What it takes.
        needed_bytes: usize,
        /// What it was given.
        given_bytes: usize,
    },
}

/// One region, as a client registered it.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) key: String,
    pub(crate) offset_bytes: u64,
    pub(crate) size_bytes: u64,
    file: Arc<File>,
}

/// The regions that are registered, by whomever.
#[derive(Debug)]
pub(crate) struct Regions {
    limit: usize,
    by_name: Mutex<BTreeMap<RegionName, Region>>,
}

/// The regions as one caller sees them: those of others are not there.
pub(crate) struct CallerRegions<'a> {
    regions: &'a Regions,
    caller: &'a Caller,
}

impl Regions {
    /// None yet, and at most so many.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, by_name: Mutex::default() }
    }

    /// As a caller sees them.
    pub(crate) fn of<'a>(&'a self, caller: &'a Caller) -> CallerRegions<'a> {
        CallerRegions { regions: self, caller }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<RegionName, Region>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallerRegions<'_> {
    /// Opens the memory of a key, and knows a part of it by a name from now on.
    pub(crate) fn register(
        &self,
        name: &str,
        key: &str,
        offset_bytes: u64,
        size_bytes: u64,
    ) -> Result<(), RegionError> {
        let failed = |source| RegionError::Failed { key: key.into(), source };
        // A link may lead anywhere, and opening a pipe may wait forever.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(flags);
        let file = options.open(path(key)?).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            return Err(RegionError::Key(key.into()));
        }
        let is_inside = offset_bytes.checked_add(size_bytes).is_some_and(|end| end <= about.len());
        if !is_inside {
            return Err(RegionError::OutOfBounds {
                wanted: format!("{size_bytes} bytes from {offset_bytes} on"),
                size_bytes: about.len(),
                of: format!("shared memory '{key}'"),
            });
        }
        let limit = self.regions.limit;
        let mut by_name = self.regions.lock();
        let known_as = self.caller.region(name);
        if by_name.contains_key(&known_as) {
            return Err(RegionError::Taken(name.into()));
        }
        if by_name.len() >= limit {
            return Err(RegionError::TooMany { limit });
        }
        let region = Region { key: key.into(), offset_bytes, size_bytes, file: Arc::new(file) };
        by_name.insert(known_as, region);
        Ok(())
    }

    /// Forgets a region, or all of the caller's where the name is empty. One that is not there is forgotten already.
    pub(crate) fn unregister(&self, name: &str) {
        let mut by_name = self.regions.lock();
        if name.is_empty() {
            by_name.retain(|known_as, _| self.caller.name_of_region(known_as).is_none());
        } else {
            by_name.remove(&self.caller.region(name));
        }
    }

    /// A region, or all of them where the name is empty.
    pub(crate) fn list(&self, name: &str) -> Result<BTreeMap<String, Region>, RegionError> {
        let by_name = self.regions.lock();
        if name.is_empty() {
            let shown = |(known_as, region): (&RegionName, &Region)| {
                Some((self.caller.name_of_region(known_as)?, region.clone()))
            };
            return Ok(by_name.iter().filter_map(shown).collect());
        }
        let region = by_name
            .get(&self.caller.region(name))
            .ok_or_else(|| RegionError::Unknown(name.into()))?;
        Ok(BTreeMap::from([(name.to_string(), region.clone())]))
    }

    /// A tensor to be read that can be in its range, as far as its shape says.
    pub(crate) fn read(
        &self,
        range: &RegionRange,
        name: &str,
        data_type: DataType,
        shape: Vec<usize>,
    ) -> Result<Reading, ServeError> {
        let (region, start) = self.part(range)?;
        let size_bytes = range.size_bytes;
        let problem = |problem| ProtocolError::Tensor { name: name.into(), problem };
        // A file may be longer than memory, so its length is no reason to set that much aside.
        if size_bytes > MAX_TENSOR_BYTES {
            let problem = problem(format!("takes more than {MAX_TENSOR_BYTES} bytes"));
            return Err(problem.into());
        }
        let times = |bytes: usize, size: &usize| bytes.checked_mul(*size);
        let needed_bytes = shape.iter().try_fold(data_type.size_bytes(), times);
        // How long texts are is not known before they are read.
        if data_type != DataType::String && needed_bytes != Some(size_bytes) {
            let problem =
                problem(format!("{size_bytes} bytes do not make {shape:?} of {data_type}"));
            return Err(problem.into());
        }
        Ok(Reading { region, start, size_bytes, name: name.into(), data_type, shape })
    }

    /// A range that a tensor is to be written to.
    pub(crate) fn write(&self, range: RegionRange) -> Result<Writing, ServeError> {
        let (region, start) = self.part(&range)?;
        Ok(Writing { region, start, range })
    }

    /// The region of a part, and where in its file the part begins.
    fn part(&self, range: &RegionRange) -> Result<(Region, u64), RegionError> {
        let known_as = self.caller.region(&range.region);
        let region = self.regions.lock().get(&known_as).cloned();
        let region = region.ok_or_else(|| RegionError::Unknown(range.region.clone()))?;
        let (offset, size) = (range.offset_bytes as u64, range.size_bytes as u64);
        if offset.checked_add(size).is_none_or(|end| end > region.size_bytes) {
            return Err(RegionError::OutOfBounds {
                wanted: format!("{size} bytes from {offset} on"),
                size_bytes: region.size_bytes,
                of: format!("region '{}'", range.region),
            });
        }
        // Both lie within the file, so their sum does not overflow.
        let start = region.offset_bytes + offset;
        Ok((region, start))
    }
}

/// A tensor that is to be read from a region, whoever forgets that meanwhile.
#[derive(Debug)]
pub(crate) struct Reading {
    region: Region,
    start: u64,
    size_bytes: usize,
    name: String,
    data_type: DataType,
    shape: Vec<usize>,
}

impl Reading {
    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    pub(crate) fn run(self) -> Result<Tensor, ServeError> {
        let Self { region, start, size_bytes, name, data_type, shape } = self;
        let mut bytes = vec![0; size_bytes];
        let read = region.file.read_exact_at(&mut bytes, start);
        read.map_err(|source| RegionError::Failed { key: region.key, source })?;
        let tensor = tensor_from_raw(data_type, shape, Bytes::from(bytes));
        Ok(tensor.map_err(|problem| ProtocolError::Tensor { name, problem })?)
    }
}

/// A part of a region that a tensor is to be written to.
#[derive(Debug)]
pub(crate) struct Writing {
    region: Region,
    start: u64,
    range: RegionRange,
}

impl Writing {
    /// Writes an output, and says what it took of the range.
    pub(crate) fn run(self, name: &str, tensor: &Tensor) -> Result<RegionRange, ServeError> {
        let Self { region, start, range } = self;
        let problem = |problem| ProtocolError::Tensor { name: name.into(), problem };
        let bytes = raw_bytes(tensor).map_err(problem)?;
        let (needed_bytes, given_bytes) = (bytes.len(), range.size_bytes);
        if needed_bytes > given_bytes {
            let name = name.into();
            return Err(RegionError::TooSmall { name, needed_bytes, given_bytes }.into());
        }
        let written = region.file.write_all_at(&bytes, start);
        written.map_err(|source| RegionError::Failed { key: region.key, source })?;
        Ok(RegionRange { size_bytes: needed_bytes, ..range })
    }
}

/// The file of a key. A key may begin with a slash, as POSIX has it, and names a file in the one folder.
fn path(key: &str) -> Result<PathBuf, RegionError> {
    let name = key.strip_prefix('/').unwrap_or(key);
    let is_plain = !name.is_empty() && !name.contains(['/', '\0']) && name != "." && name != "..";
    is_plain.then(|| PathBuf::from(FOLDER).join(name)).ok_or_else(|| RegionError::Key(key.into()))
}

/// Regions of a GPU's memory are never registered, so that any name is unknown.
pub(crate) fn no_cuda_region(name: &str) -> Result<(), ServeError> {
    if name.is_empty() { Ok(()) } else { Err(RegionError::Unknown(name.into()).into()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tenants::anybody;

    /// A file under `/dev/shm` that is gone when this is dropped.
    struct Memory(String);

    impl Memory {
        fn new(name: &str, bytes: &[u8]) -> Self {
            let key = format!("/weft-test-{name}-{}", std::process::id());
            fs::write(path(&key).unwrap(), bytes).unwrap();
            Self(key)
        }
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            let _ = fs::remove_file(path(&self.0).unwrap());
        }
    }

    fn range(offset_bytes: usize, size_bytes: usize) -> RegionRange {
        RegionRange { region: "r".into(), offset_bytes, size_bytes }
    }

    #[test]
    fn tensors_are_read_and_written_where_they_belong() {
        let memory = Memory::new("whole", &[0; 32]);
        let (regions, caller) = (Regions::new(1), anybody());
        let regions = regions.of(&caller);
        regions.register("r", &memory.0, 8, 24).unwrap();
        let tensor = Tensor::vector(vec![1.5f32, -2.0]);
        let written = regions.write(range(4, 12)).unwrap().run("y", &tensor);
        assert_eq!(written.unwrap(), range(4, 8));
        let read = regions.read(&range(4, 8), "x", DataType::F32, vec![2]).unwrap();
        assert_eq!((read.size_bytes(), read.run().unwrap()), (8, tensor));
        assert_eq!(fs::read(path(&memory.0).unwrap()).unwrap()[12..16], 1.5f32.to_le_bytes());
        assert_eq!(regions.list("").unwrap()["r"].size_bytes, 24);
        regions.unregister("r");
        assert!(matches!(regions.list("r"), Err(RegionError::Unknown(_))));
    }

    #[test]
    fn nothing_outside_a_region_is_touched() {
        let memory = Memory::new("bounds", &[0; 32]);
        let (regions, caller) = (Regions::new(1), anybody());
        let regions = regions.of(&caller);
        let register = |offset, size| regions.register("r", &memory.0, offset, size);
        for (offset, size) in [(0, 33), (33, 0), (u64::MAX, 1), (1, u64::MAX)] {
            assert!(matches!(register(offset, size), Err(RegionError::OutOfBounds { .. })));
        }
        register(0, 16).unwrap();
        assert!(matches!(register(0, 16), Err(RegionError::Taken(_))));
        let more = regions.register("s", &memory.0, 0, 16);
        assert!(matches!(more, Err(RegionError::TooMany { limit: 1 })));
        for (offset, size) in [(16, 4), (0, 20), (usize::MAX, 1), (1, usize::MAX)] {
            let read = regions.read(&range(offset, size), "x", DataType::F32, vec![1]);
            assert!(matches!(read, Err(ServeError::Region(RegionError::OutOfBounds { .. }))));
        }
        let tensor = Tensor::vector(vec![0f32; 3]);
        let small = regions.write(range(0, 8)).unwrap().run("y", &tensor);
        assert!(matches!(small, Err(ServeError::Region(RegionError::TooSmall { .. }))));
    }

    #[test]
    fn what_cannot_be_the_tensor_is_not_read() {
        // As long as it may be, and nothing of it is there: whoever reads it sets that much memory aside.
        let memory = Memory::new("long", &[]);
        let file = fs::OpenOptions::new().write(true).open(path(&memory.0).unwrap()).unwrap();
        file.set_len(MAX_TENSOR_BYTES as u64 + 1).unwrap();
        let (regions, caller) = (Regions::new(1), anybody());
        let regions = regions.of(&caller);
        regions.register("r", &memory.0, 0, MAX_TENSOR_BYTES as u64 + 1).unwrap();
        let read = |size, data_type, shape: &[usize]| {
            regions.read(&range(0, size), "x", data_type, shape.to_vec())
        };
        for (size, shape) in [
            (MAX_TENSOR_BYTES, &[1, 3][..]),
            (MAX_TENSOR_BYTES + 1, &[MAX_TENSOR_BYTES / 4 + 1]),
            (8, &[3]),
            (0, &[usize::MAX, 2]),
        ] {
            let wrong = read(size, DataType::F32, shape);
            assert!(matches!(wrong, Err(ServeError::Protocol(_))), "{size} {shape:?}");
        }
        assert!(read(12, DataType::F32, &[1, 3]).is_ok());
        assert!(read(1 << 20, DataType::String, &[1]).is_ok(), "a text may be long");
    }

    #[test]
    fn memory_that_has_shrunk_is_an_error() {
        let memory = Memory::new("shrunk", &[0; 32]);
        let (regions, caller) = (Regions::new(1), anybody());
        let regions = regions.of(&caller);
        regions.register("r", &memory.0, 0, 32).unwrap();
        fs::write(path(&memory.0).unwrap(), [0; 8]).unwrap();
        let read = regions.read(&range(0, 32), "x", DataType::F32, vec![8]).unwrap().run();
        assert!(matches!(read, Err(ServeError::Region(RegionError::Failed { .. }))));
    }

    #[test]
    fn keys_stay_in_their_folder() {
        for key in ["", "/", "..", "/..", ".", "a/b", "//a", "/a/../b", "../etc/passwd", "a\0b"] {
            let registered = Regions::new(1).of(&anybody()).register("r", key, 0, 1);
            assert!(matches!(registered, Err(RegionError::Key(_))), "{key:?}");
        }
        let memory = Memory::new("link", &[0; 8]);
        let link = Memory(format!("{}-to", memory.0));
        std::os::unix::fs::symlink("/etc/hostname", path(&link.0).unwrap()).unwrap();
        let registered = Regions::new(1).of(&anybody()).register("r", &link.0, 0, 1);
        assert!(matches!(registered, Err(RegionError::Failed { .. })));
    }
}
