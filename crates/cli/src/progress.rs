//! What is being done right now, on one line of the terminal that is overwritten; silent where nobody watches.

use std::fmt::Display;
use std::io::{IsTerminal, stderr};

/// Shows what is being done.
pub(crate) fn show(what: impl Display) {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K{what}");
    }
}

/// Clears the line.
pub(crate) fn clear() {
    show("");
}
