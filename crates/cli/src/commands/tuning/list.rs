//! `weft tuning list`: where the database lies, and how much it knows.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::{Value as Json, json};
use weft_tuner::database::{Database, PlatformSummary, unix_ms_now};

use super::age::ago;
use crate::table::{Table, bytes};
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  weft tuning list
  weft tuning list --database lab.db --json

A result holds for its platform alone: on another chip, under another driver or
with other kernels it is not used, and is kept for those who have them.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(database: &Database, options: &Options) -> Result<()> {
    database.check()?;
    let summaries = database.summaries()?;
    let size_bytes = fs::metadata(database.path()).map_or(0, |data| data.len());
    let text = match options.json {
        true => format!("{:#}", report(database, size_bytes, &summaries)),
        false => described(database, size_bytes, &summaries),
    };
    Ok(terminal::print(&text)?)
}

fn described(database: &Database, size_bytes: u64, summaries: &[PlatformSummary]) -> String {
    let size = bytes(usize::try_from(size_bytes).unwrap_or(usize::MAX));
    let place = format!("{}, {size}", database.path().display());
    if summaries.is_empty() {
        return format!("{place}\n\nnothing is in it yet: `weft tune` and `weft regulate` fill it");
    }
    let mut table = Table::new([
        "chip",
        "driver",
        "kernels",
        "operators",
        "choices",
        "measured",
        "wrong",
        "failed",
        "hung",
        "crashed",
        "schedules",
        "last",
    ]);
    for summary in summaries {
        let age = Duration::from_millis(unix_ms_now().saturating_sub(summary.newest_unix_ms));
        let counts = [
            summary.operators,
            summary.choices,
            summary.measured,
            summary.wrong,
            summary.failed,
            summary.hung,
            summary.crashed,
            summary.schedules,
        ];
        let platform = &summary.platform;
        let names = [platform.chip.clone(), platform.driver.clone(), platform.kernels.clone()];
        let counts = counts.iter().map(ToString::to_string);
        table.row(names.into_iter().chain(counts).chain([ago(age)]));
    }
    format!("{place}\n\n{}", table.render())
}

fn report(database: &Database, size_bytes: u64, summaries: &[PlatformSummary]) -> Json {
    let platform = |summary: &PlatformSummary| {
        json!({
            "chip": summary.platform.chip,
            "driver": summary.platform.driver,
            "kernels": summary.platform.kernels,
            "operators": summary.operators,
            "choices": summary.choices,
            "measured": summary.measured,
            "wrong": summary.wrong,
            "failed": summary.failed,
            "hung": summary.hung,
            "crashed": summary.crashed,
            "schedules": summary.schedules,
            "newest_unix_ms": summary.newest_unix_ms,
        })
    };
    json!({
        "file": database.path().display().to_string(),
        "size_bytes": size_bytes,
        "platforms": summaries.iter().map(platform).collect::<Vec<_>>(),
    })
}
