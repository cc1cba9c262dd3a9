//! `weft tuning prune`: what is of no more use goes.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{ArgGroup, Args};
use weft_tuner::database::{Database, PlatformSummary, Prune, Pruned, unix_ms_now};

use super::{age, counted, is_called};
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  weft tuning prune --superseded --older-than 26w
  weft tuning prune --keep-chip h200 --keep-chip epyc --dry-run

What is forgotten is gone: `weft tuning export` keeps a copy.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct Options {
    /// Forget all chips but those with this in their name; may be given several times
    #[arg(long, value_name = "TEXT", group = "what")]
    keep_chip: Vec<String>,
    /// Forget what holds for other drivers and kernels than those that a chip was last tuned with
    #[arg(long, group = "what")]
    superseded: bool,
    /// Forget what is older than this: 90m, 12h, 30d, 8w
    #[arg(long, value_name = "AGE", value_parser = age::parse, group = "what")]
    older_than: Option<Duration>,
    /// Forget that candidates are wrong, fail, hang or crash, so that they are tried again
    #[arg(long, group = "what")]
    banned: bool,
    /// Only say what would be forgotten
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(database: &Database, options: &Options) -> Result<()> {
    let what = asked(&database.summaries()?, options)?;
    let (pruned, verb) = match options.dry_run {
        true => (database.rehearse_prune(&what)?, "would be forgotten"),
        false => (database.prune(&what)?, "forgotten"),
    };
    let Pruned { trials, choices, schedules } = pruned;
    let (trials, choices) = (counted(trials, "trial"), counted(choices, "choice"));
    let text = format!("{trials}, {choices} and {} {verb}", counted(schedules, "schedule"));
    Ok(terminal::print(&text)?)
}

fn asked(summaries: &[PlatformSummary], options: &Options) -> Result<Vec<Prune>> {
    let mut what = Vec::new();
    for kept in &options.keep_chip {
        if !summaries.iter().any(|summary| is_called(&summary.platform, kept)) {
            bail!(
                "no chip in the database has '{kept}' in its name, so nothing is forgotten: `weft tuning list` shows which \
                 there are"
            );
        }
    }
    let is_kept = |summary: &&PlatformSummary| {
        options.keep_chip.iter().any(|kept| is_called(&summary.platform, kept))
    };
    if !options.keep_chip.is_empty() {
        let others = summaries.iter().filter(|summary| !is_kept(summary));
        what.extend(others.map(|summary| Prune::Platform(summary.platform.clone())));
    }
    if options.superseded {
        what.extend(superseded(summaries).map(|summary| Prune::Platform(summary.platform.clone())));
    }
    if let Some(age) = options.older_than {
        let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        what.push(Prune::RecordedBefore(unix_ms_now().saturating_sub(age_ms)));
    }
    if options.banned {
        what.push(Prune::Banned);
    }
    Ok(what)
}

/// The platforms of chips of which a later one is known.
fn superseded(summaries: &[PlatformSummary]) -> impl Iterator<Item = &PlatformSummary> {
    let mut latest: BTreeMap<&str, u64> = BTreeMap::new();
    for summary in summaries {
        let newest = latest.entry(&summary.platform.chip).or_default();
        *newest = summary.newest_unix_ms.max(*newest);
    }
    let is_latest = move |summary: &&PlatformSummary| {
        latest.get(summary.platform.chip.as_str()) == Some(&summary.newest_unix_ms)
    };
    summaries.iter().filter(move |summary| !is_latest(summary))
}
