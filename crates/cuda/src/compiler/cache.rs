//! Machine code on disk, by the content it was made from.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use xxhash_rust::xxh3::xxh3_128;

/// How many bytes of machine code are kept.
const MAX_CACHE_BYTES: u64 = 512 << 20;

/// What each file starts with.
const MAGIC: &[u8; 8] = b"WEFTCODE";
/// The magic, and a checksum of what follows.
const HEADER_BYTES: usize = MAGIC.len() + size_of::<u128>();
const EXTENSION: &str = "cubin";
/// The extension of files that are being written; those that a process left behind grow old and go like all others.
const UNFINISHED: &str = "part";

/// A folder of machine code. All its failures mean no more than that a kernel is compiled again.
#[derive(Debug)]
pub struct KernelCache {
    folder: PathBuf,
    limit_bytes: u64,
    /// The size of all files, as far as this process knows.
    size_bytes: Mutex<u64>,
}

impl KernelCache {
    /// The cache that the environment names: in `WEFT_CACHE_DIR`, or `weft` in the user's folder of caches. `None`
    /// where there is no such folder.
    pub fn of_process() -> Option<Self> {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || Some(set("HOME")?.join(".cache"));
        let folder = set("WEFT_CACHE_DIR")
            .or_else(|| Some(set("XDG_CACHE_HOME").or_else(home)?.join("weft")))?;
        Some(Self::new(folder.join("kernels"), MAX_CACHE_BYTES))
    }

    /// A cache in a folder, which is made when something is kept; the files that were used longest ago go when all
    /// together pass `limit_bytes`.
    pub fn new(folder: PathBuf, limit_bytes: u64) -> Self {
        let size_bytes = entries(&folder).iter().map(|entry| entry.size_bytes).sum();
        Self { folder, limit_bytes, size_bytes: Mutex::new(size_bytes) }
    }

    /// The machine code that was kept under a key; `None` where there is none, or where it is damaged.
    pub fn read(&self, key: u128) -> Option<Vec<u8>> {
        let path = self.path(key);
        let bytes = fs::read(&path).ok()?;
        let Some(code) = unpack(&bytes) else {
            let _ = fs::remove_file(&path);
            return None;
        };
        // The age of a file is the time since it was last used.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(code.to_vec())
    }

    /// Keeps machine code under a key, where the folder can be written.
    pub fn write(&self, key: u128, code: &[u8]) {
        let bytes = pack(code);
        if self.put(key, &bytes).is_ok() {
            self.grew_by(bytes.len() as u64);
        }
    }

    /// Files appear whole or not at all, whoever else writes the same one.
    fn put(&self, key: u128, bytes: &[u8]) -> io::Result<()> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let unfinished =
            self.folder.join(format!("{key:032x}.{}.{number}.{UNFINISHED}", process::id()));
        fs::create_dir_all(&self.folder)?;
        fs::write(&unfinished, bytes)
            .and_then(|()| fs::rename(&unfinished, self.path(key)))
            .inspect_err(|_| {
                let _ = fs::remove_file(&unfinished);
            })
    }

    fn grew_by(&self, bytes: u64) {
        let mut size = self.size_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        *size += bytes;
        if *size > self.limit_bytes {
            *size = shrink(&self.folder, self.limit_bytes);
        }
    }

    fn path(&self, key: u128) -> PathBuf {
        self.folder.join(format!("{key:032x}.{EXTENSION}"))
    }
}

fn pack(code: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + code.len());
    bytes.extend(MAGIC);
    bytes.extend(xxh3_128(code).to_le_bytes());
    bytes.extend(code);
    bytes
}

fn unpack(bytes: &[u8]) -> Option<&[u8]> {
    let (checksum, code) = bytes.strip_prefix(MAGIC)?.split_first_chunk()?;
    (u128::from_le_bytes(*checksum) == xxh3_128(code)).then_some(code)
}

struct Entry {
    path: PathBuf,
    used: SystemTime,
    size_bytes: u64,
}

fn entries(folder: &Path) -> Vec<Entry> {
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    files
        .flatten()
        .map(|file| file.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == EXTENSION || extension == UNFINISHED)
        })
        .filter_map(|path| {
            let data = fs::metadata(&path).ok()?;
            Some(Entry { used: data.modified().ok()?, size_bytes: data.len(), path })
        })
        .collect()
}

/// Removes the files that were used longest ago until what is left is well below the limit, so that this is rare; the
/// size of what is left.
fn shrink(folder: &Path, limit_bytes: u64) -> u64 {
    let mut entries = entries(folder);
    entries.sort_by_key(|entry| entry.used);
    let mut size: u64 = entries.iter().map(|entry| entry.size_bytes).sum();
    for entry in entries {
        if size <= limit_bytes / 4 * 3 {
            break;
        }
        if fs::remove_file(&entry.path).is_ok() {
            size -= entry.size_bytes;
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A folder that does not exist yet, and is removed when the test ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let path = env::temp_dir().join(format!("weft-cache-{test}-{}", process::id()));
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }

        fn cache(&self, limit_bytes: u64) -> KernelCache {
            KernelCache::new(self.0.join("kernels"), limit_bytes)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_was_kept_is_found_by_later_processes() {
        let folder = Folder::new("kept");
        folder.cache(1000).write(7, b"code");
        let later = folder.cache(1000);
        assert_eq!(later.read(7).as_deref(), Some(&b"code"[..]));
        assert_eq!(later.read(8), None);
        assert_eq!(entries(&later.folder).len(), 1, "no unfinished file is left");
    }

    #[test]
    fn damaged_files_are_not_used_and_can_be_replaced() {
        let folder = Folder::new("damaged");
        let cache = folder.cache(1000);
        let whole = pack(b"code");
        let flipped = {
            let mut bytes = whole.clone();
            *bytes.last_mut().unwrap() ^= 1;
            bytes
        };
        for damaged in [&b""[..], b"WEFT", &whole[..whole.len() - 1], &flipped] {
            cache.write(7, b"code");
            fs::write(cache.path(7), damaged).unwrap();
            assert_eq!(cache.read(7), None, "{damaged:?}");
            assert!(!cache.path(7).exists());
        }
        cache.write(7, b"code");
        assert!(cache.read(7).is_some());
    }

    #[test]
    fn what_was_used_longest_ago_makes_room() {
        let folder = Folder::new("room");
        let code = [0u8; 100];
        let limit = 4 * pack(&code).len() as u64;
        let cache = folder.cache(limit);
        let minutes_ago = |minutes| SystemTime::now() - Duration::from_secs(60 * minutes);
        for key in 0..4 {
            cache.write(key, &code);
            let file = File::open(cache.path(key)).unwrap();
            file.set_modified(minutes_ago(10 - key as u64)).unwrap();
        }
        assert!(cache.read(0).is_some(), "reading makes it the one used last");
        cache.write(4, &code);
        let kept: Vec<u128> = (0..5).filter(|&key| cache.read(key).is_some()).collect();
        assert_eq!(kept, [0, 3, 4]);
        let later = folder.cache(limit);
        assert_eq!(*later.size_bytes.lock().unwrap(), 3 * pack(&code).len() as u64);
    }

    #[test]
    fn a_folder_that_cannot_be_written_means_no_cache() {
        let folder = Folder::new("unwritable");
        fs::create_dir_all(&folder.0).unwrap();
        // Where a folder is wanted stands a file, which stops even those who may write everywhere.
        fs::write(folder.0.join("kernels"), "").unwrap();
        let cache = folder.cache(1000);
        cache.write(7, b"code");
        assert_eq!(cache.read(7), None);
    }
}
