//! How a program was bounded and how it ended.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

use super::Options;
use super::program::{self, Ended};
use crate::files;
use crate::progress;

/// What is said at the end.
pub(super) struct Report<'a> {
    pub(super) options: &'a Options,
    pub(super) bounds: Value,
    pub(super) ended: &'a Ended,
}

impl Report<'_> {
    /// Says it, writes it where it is asked for, and ends as the program did.
    pub(super) fn finish(self) -> Result<ExitCode> {
        let Ended { code, duration, cpu_s } = *self.ended;
        let ran_s = duration.as_secs_f64();
        self.options.say(&format!(
            "{} ran for {ran_s:.1} s and used {cpu_s:.1} s of processor time",
            program::name(self.options)
        ));
        if let Some(path) = &self.options.json {
            let program: Vec<_> =
                self.options.program.iter().map(|word| word.to_string_lossy()).collect();
            let report = json!({
                "program": program,
                "bounds": self.bounds,
                "priority": self.options.priority.name(),
                "duration_s": ran_s,
                "cpu_s": cpu_s,
                "exit_code": code,
            });
            // How the program ended counts for more than that it could not be written down.
            if let Err(error) = files::write(path, &serde_json::to_string_pretty(&report)?) {
                progress::say(format!("weft: {}", crate::describe(&error)));
            }
        }
        Ok(ExitCode::from(code))
    }
}
