//! `weft simulate`: policies side by side on a workload, under virtual time.

mod json;
mod layout;
mod most_rate;
mod picture;
mod play;
mod series;
mod tables;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;
use clap::builder::PossibleValuesParser;
use weft_scheduler::policies::{ALL, KnownPolicy};

use crate::files;
use crate::progress;
use crate::terminal;
use crate::workload::{Workload, WorkloadOptions};
use play::Played;

const EXAMPLES: &str = "\
Examples:
  # every policy, side by side, on twice the load
  weft simulate workloads/four-models.toml --scale 2 --svg report.svg
  # who ran where and when, for ui.perfetto.dev or chrome://tracing
  weft simulate workload.toml --policies clockwork --trace trace.json
  # the most load that each policy carries, under objectives half as long
  weft simulate workloads/four-models.toml --max-rate --slo-scale 0.5

The same seed gives the same results. Bad input ends in exit code 2.";

#[derive(Args)]
#[command(after_help = after_help())]
pub(crate) struct Options {
    #[command(flatten)]
    workload: WorkloadOptions,
    /// Policies to run, of those below; with commas [default: all]
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(ALL.iter().map(|known| known.name)),
        hide_possible_values = true
    )]
    policies: Vec<String>,
    /// Draw from this seed instead of the workload's
    #[arg(long)]
    seed: Option<u64>,
    /// Search the greatest factor on all rates that each policy carries
    #[arg(long, conflicts_with_all = ["svg", "trace", "all_models"])]
    max_rate: bool,
    /// What it carries: this share of requests in time
    #[arg(long, value_name = "SHARE", default_value_t = 0.99, requires = "max_rate")]
    target: f64,
    /// Show every model, also where there are many
    #[arg(long)]
    all_models: bool,
    /// Also write the results as JSON to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also draw the results as an SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Also write who ran where and when; a file for each policy
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// The policies, with what each does, and examples.
fn after_help() -> String {
    let width = ALL.iter().map(|known| known.name.len()).max().unwrap_or(0);
    let line = |known: &KnownPolicy| format!("  {:width$}  {}", known.name, known.description);
    let policies: Vec<String> = ALL.iter().map(line).collect();
    format!("Policies:\n{}\n\n{EXAMPLES}", policies.join("\n"))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.target > 0.0 && options.target <= 1.0, "--target must be a share up to 1");
    let mut workload = options.workload.read()?;
    workload.world.seed = options.seed.unwrap_or(workload.world.seed);
    let is_chosen = |known: &&KnownPolicy| {
        options.policies.is_empty() || options.policies.iter().any(|name| name == known.name)
    };
    let chosen: Vec<&'static KnownPolicy> = ALL.iter().filter(is_chosen).collect();
    if workload.devices > 1 {
        ensure!(!options.max_rate, "--max-rate is of one device, and this workload has more");
        ensure!(options.trace.is_none(), "--trace is of one device, and this workload has more");
    }
    match options.max_rate {
        true => most_rate::run(&workload, &chosen, options.target, options.json.as_deref()),
        false => side_by_side(&workload, &chosen, options),
    }
}

fn side_by_side(
    workload: &Workload,
    chosen: &[&'static KnownPolicy],
    options: &Options,
) -> Result<()> {
    let world = &workload.world;
    let start = Instant::now();
    let mut all: Vec<Played> = Vec::new();
    for (index, known) in chosen.iter().enumerate() {
        let trace = options.trace.as_deref().map(|path| match chosen.len() {
            1 => path.to_path_buf(),
            _ => beside(path, known.name),
        });
        let place = format!("{} ({} of {})", known.name, index + 1, chosen.len());
        all.push(match workload.devices {
            1 => play::play(world, known, &place, trace.as_deref())?,
            devices => {
                progress::show(format!("simulating {place} on {devices} devices"));
                play::play_fleet(workload, known)?
            }
        });
    }
    progress::clear();
    let elapsed = start.elapsed().as_secs_f64();
    if let Some(path) = &options.json {
        files::write(path, &format!("{:#}\n", json::report(workload, &all)))?;
    }
    if let Some(path) = &options.svg {
        files::write(path, &picture::svg(workload, &all))?;
    }
    let simulated: u64 = all.iter().map(|played| played.outcome.total().arrived).sum();
    let mut parts = vec![workload.title(), tables::summary(world, &all).render()];
    if workload.devices > 1 {
        parts.push(tables::by_device(world, &all).render());
    }
    parts.push(tables::by_model(world, &all, options.all_models));
    parts.extend(tables::prediction_errors(&all));
    parts.push(format!(
        "{simulated} requests of {:.0} simulated seconds in {elapsed:.2} s, seed {}",
        world.length.seconds(),
        world.seed
    ));
    Ok(terminal::print(&parts.join("\n\n"))?)
}

/// A file's name with a word before its ending.
fn beside(path: &Path, word: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending =
        path.extension().map_or(String::new(), |ending| format!(".{}", ending.to_string_lossy()));
    path.with_file_name(format!("{stem}.{word}{ending}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_of_several_policies_have_names_of_their_own() {
        let named = |path: &str| beside(Path::new(path), "clockwork");
        assert_eq!(named("out/trace.json"), Path::new("out/trace.clockwork.json"));
        assert_eq!(named("trace"), Path::new("trace.clockwork"));
    }
}
