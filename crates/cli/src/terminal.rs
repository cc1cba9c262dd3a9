//! The standard output: how wide it is, whether it shows colours, and writing to it.

use std::env;
use std::io::{self, ErrorKind, IsTerminal, Write, stdout};
use std::process::{Command, Stdio};

/// Where nobody says how wide it is.
const WIDTH: usize = 100;

/// Columns of the standard output: what the environment says, or the terminal.
pub(crate) fn width() -> usize {
    let said = env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    said.filter(|&columns| columns > 0).or_else(terminal_columns).unwrap_or(WIDTH)
}

/// Whether it is a terminal whose user has not asked for text without colours.
pub(crate) fn has_colours() -> bool {
    let wants_none = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = env::var_os("TERM").is_some_and(|kind| kind == "dumb");
    stdout().is_terminal() && !wants_none && !is_dumb
}

/// A text in lines of at most so many columns, broken between words.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines.join("\n")
}

/// Prints a text and ends the line. That nobody reads it to the end is no failure.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut output = stdout().lock();
    match writeln!(output, "{text}").and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let what = format!("cannot write to the standard output: {error}");
            Err(io::Error::new(error.kind(), what))
        }
        _ => Ok(()),
    }
}

/// Asks the terminal through the program that every system has for it.
fn terminal_columns() -> Option<usize> {
    if !stdout().is_terminal() {
        return None;
    }
    let mut command = Command::new("stty");
    let output = command.arg("size").stdin(Stdio::inherit()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_whitespace().nth(1)?.parse().ok().filter(|&columns| columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_are_as_long_as_fits() {
        assert_eq!(wrapped("one two three", 7), "one two\nthree");
        assert_eq!(wrapped("one two three", 13), "one two three");
        assert_eq!(wrapped("immeasurable é è", 3), "immeasurable\né è");
        assert_eq!(wrapped("", 9), "");
    }
}
