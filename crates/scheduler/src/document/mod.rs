//! TOML texts read with every problem found at once, each with the line it is on.

mod item;
mod lines;
mod problems;
mod section;

use toml::de::DeTable;

pub use item::Item;
pub use problems::{Problem, Problems};
pub use section::Section;

use lines::Lines;

/// What the parser says of a key that a table already has; the rest of such a text can still be read.
const DUPLICATE: &str = "duplicate key";

/// Reads a text. `interpret` takes what it needs from the root and notes what is wrong; its value counts only where
/// nothing was.
pub fn read<T>(
    text: &str,
    interpret: impl FnOnce(Section<'_>, &mut Problems) -> Option<T>,
) -> Result<T, Problems> {
    let lines = Lines::of(text);
    let mut problems = Problems::default();
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut is_readable = true;
    for error in errors {
        let span = error.span().unwrap_or_default();
        let line = lines.line_at(span.start);
        if error.message() == DUPLICATE {
            problems.note(line, format!("'{}' is given twice", text.get(span).unwrap_or_default()));
        } else {
            is_readable = false;
            problems.note(line, error.message());
        }
    }
    // Past a broken line nobody knows what was meant, and whatever is missing may stand on that line.
    if !is_readable {
        return Err(problems.in_order());
    }
    let value = interpret(Section::root(root.get_ref(), &lines), &mut problems);
    match value {
        Some(value) if problems.is_empty() => Ok(value),
        _ => Err(problems.in_order()),
    }
}

#[cfg(test)]
mod tests;
