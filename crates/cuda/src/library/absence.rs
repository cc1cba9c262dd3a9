//! Why a library or a header is absent.

use std::fmt;
use std::path::PathBuf;

/// Something that was searched for and not found, and where it was searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absence {
    /// What is absent, for people.
    pub what: String,
    /// The file names that were tried.
    pub names: Vec<String>,
    /// The folders that were looked into, besides those of the loader.
    pub folders: Vec<PathBuf>,
    /// What the loader said of each file or name that it could not open.
    pub failures: Vec<String>,
}

impl std::error::Error for Absence {}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not found: tried {}", self.what, self.names.join(", "))?;
        if self.folders.is_empty() {
            write!(f, " on the loader's path; no other folder that may have it exists")?;
        } else {
            let folders: Vec<String> =
                self.folders.iter().map(|folder| folder.display().to_string()).collect();
            write!(f, " on the loader's path and in {}", folders.join(", "))?;
        }
        if !self.failures.is_empty() {
            write!(f, " ({})", self.failures.join("; "))?;
        }
        write!(f, ". WEFT_CUDA_PATH may name the folder that has it")
    }
}
