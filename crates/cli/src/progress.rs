//! What is being done right now, on one line of the terminal that is overwritten, and what was done.

use std::fmt::Display;
use std::io::{IsTerminal, Write, stderr};

/// Shows what is being done; silent where nobody watches.
pub(crate) fn show(what: impl Display) {
    if stderr().is_terminal() {
        write(format!("\r\x1b[K{what}"));
    }
}

/// Clears the line.
pub(crate) fn clear() {
    show("");
}

/// Says what was done, on a line that stays, also where it is read only later.
pub(crate) fn note(what: impl Display) {
    clear();
    say(what);
}

/// Says something, and leaves what stands on the line before it: another program may have written that.
pub(crate) fn say(what: impl Display) {
    write(format!("{what}\n"));
}

/// That nobody can be told any more is no reason to end what is being done.
fn write(text: String) {
    let _ = stderr().write_all(text.as_bytes());
}
