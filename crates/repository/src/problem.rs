//! One thing that is wrong with a repository, or worth knowing about it.

use std::fmt;
use std::path::{Path, PathBuf};

/// The most problems that are listed of one text, and how much is said of each: a text may be wrong on every line.
const MAX_PROBLEMS: usize = 100;
const MAX_CHARACTERS: usize = 400;

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
    /// About a file as a whole.
    pub fn new(file: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, what: shortened(what.into()) }
    }

    pub(crate) fn on_line(file: impl Into<PathBuf>, line: usize, what: impl Into<String>) -> Self {
        Self { file: file.into(), line: Some(line), what: shortened(what.into()) }
    }

    /// The problems of a text by their lines. Past the limit it is said how many there are.
    pub(crate) fn of_text(
        file: &Path,
        problems: impl ExactSizeIterator<Item = (usize, String)>,
    ) -> Vec<Self> {
        let left_out = problems.len().saturating_sub(MAX_PROBLEMS);
        let mut listed: Vec<Self> = problems
            .take(MAX_PROBLEMS)
            .map(|(line, what)| Self::on_line(file, line, what))
            .collect();
        if left_out > 0 {
            listed.push(Self::new(file, format!("and {left_out} more of this file")));
        }
        listed
    }
}

fn shortened(what: String) -> String {
    match what.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}...", &what[..end]),
        None => what,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_wrong_on_every_line_is_not_repeated_in_whole() {
        let lines = (1..=250).map(|line| (line, "ö".repeat(1000))).collect::<Vec<_>>();
        let listed = Problem::of_text(Path::new("a"), lines.into_iter());
        assert_eq!(listed.len(), 101);
        assert_eq!(listed[100].to_string(), "a: and 150 more of this file");
        assert_eq!(listed[0].what.chars().count(), 403);
    }

    #[test]
    fn what_is_shown_keeps_to_one_line() {
        let problem = Problem::on_line("a\n\u{1b}[2J", 3, "b\tc");
        assert_eq!(problem.to_string(), "a\u{fffd}\u{fffd}[2J:3: b\u{fffd}c");
    }
}
