//! One thing that is wrong with a repository, or worth knowing about it.

use std::fmt;
use std::path::PathBuf;

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file or folder, from the repository's root where it lies inside.
    pub file: PathBuf,
    /// The line, counted from 1, where the file is a text.
    pub line: Option<usize>,
    /// What is wrong there.
    pub what: String,
}

impl Problem {
    pub(crate) fn new(file: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, what: what.into() }
    }

    pub(crate) fn on_line(file: impl Into<PathBuf>, line: usize, what: impl Into<String>) -> Self {
        Self { file: file.into(), line: Some(line), what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        let text = match self.line {
            Some(line) => format!("{file}:{line}: {}", self.what),
            None => format!("{file}: {}", self.what),
        };
        // Names on disk may hold line breaks and escape codes, which have no business in a terminal.
        let shown: String =
            text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        f.write_str(&shown)
    }
}
