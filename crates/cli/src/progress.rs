//! What is being done right now, on one line of the terminal that is overwritten, and what was done.

use std::fmt::Display;
use std::io::{IsTerminal, stderr};

/// Shows what is being done; silent where nobody watches.
pub(crate) fn show(what: impl Display) {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K{what}");
    }
}

/// Clears the line.
pub(crate) fn clear() {
    show("");
}

/// Says what was done, on a line that stays, also where it is read only later.
pub(crate) fn note(what: impl Display) {
    clear();
    eprintln!("{what}");
}
