//! What files look like from outside: enough to see that one of them changed.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// One file as its folder describes it. A file that is written anew differs in its time or its length, one that is
/// renamed into its place in its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// How long it is.
    pub length_bytes: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub modified_ns: i128,
    /// Which file it is, on its file system.
    pub inode: u64,
}

impl FileStamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let seconds = i128::from(metadata.mtime());
        Self {
            length_bytes: metadata.len(),
            modified_ns: seconds * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
            inode: metadata.ino(),
        }
    }
}

/// The files that one version of a model consists of, by name: the model itself, and what lies beside it, since weights
/// may.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fingerprint(Vec<(String, FileStamp)>);

impl Fingerprint {
    /// Of these files, in any order.
    pub fn new(mut files: Vec<(String, FileStamp)>) -> Self {
        files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Self(files)
    }

    /// The files, by name.
    pub fn files(&self) -> &[(String, FileStamp)] {
        &self.0
    }

    /// How long they are together.
    pub fn length_bytes(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, stamp)| sum.saturating_add(stamp.length_bytes))
    }
}
