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
    /// The folders that were looked into.
    pub folders: Vec<PathBuf>,
    /// The loader was asked too, which has folders of its own.
    pub was_loader_asked: bool,
    /// What the loader said of each file or name that it could not open.
    pub failures: Vec<String>,
}

impl std::error::Error for Absence {}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not found: tried {}", self.what, self.names.join(", "))?;
        let loader = self.was_loader_asked.then(|| "on the loader's path".to_string());
        let folders = self.folders.iter().map(|folder| format!("in {}", folder.display()));
        let places: Vec<String> = loader.into_iter().chain(folders).collect();
        if !places.is_empty() {
            write!(f, " {}", places.join(", "))?;
        }
        if !self.failures.is_empty() {
            write!(f, " ({})", self.failures.join("; "))?;
        }
        write!(f, ". WEFT_CUDA_PATH may name the folder that has it")
    }
}
