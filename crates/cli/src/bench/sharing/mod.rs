//! `weft bench sharing`: the most load that each policy carries on mixes of models, and Weft under a load that moves.

mod mixes;
mod most_load;
mod moving;
mod parallel;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;
use weft_scheduler::{ProfileSet, Span};

use crate::files;
use crate::terminal;
use most_load::{Case, MostLoad};

#[derive(Args)]
pub(crate) struct Options {
    /// Mixes to compare on, with commas; workloads/mix-NAME.toml says what each is [default: all]
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(mixes::ALL.iter().map(|mix| mix.name))
    )]
    mixes: Vec<String>,
    /// Objectives, as multiples of the latency of one item alone on the whole device
    #[arg(long, value_name = "FACTORS", value_delimiter = ',', default_values_t = [5.0, 2.5])]
    slo: Vec<f64>,
    /// Simulated seconds of each run; loads that move have their own
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Draw from this seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Profiles to simulate with [default: Weft's own kernels on an H200]
    #[arg(long, value_name = "FILE")]
    profiles: Option<PathBuf>,
    /// Also write the results as JSON to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let is_time = options.seconds > 0.0 && options.seconds.is_finite();
    ensure!(is_time, "--seconds must be a number above 0");
    let are_multiples = options.slo.iter().all(|&factor| factor >= 1.0 && factor.is_finite());
    ensure!(are_multiples, "--slo must be multiples of at least 1");
    let profiles = mixes::profiles(options.profiles.as_deref())?;
    let cases = cases(options, &profiles)?;
    let found = MostLoad::search(&cases)?;
    let moved = moving::run_all(&cases, &found)?;
    if let Some(path) = &options.json {
        let report = json!({
            "device": profiles.device.name,
            "units": profiles.device.units,
            "seed": options.seed,
            "target": most_load::TARGET,
            "most_load": most_load::json(&cases, &found),
            "moving": moving::json(&moved),
        });
        files::write(path, &format!("{report:#}\n"))?;
    }
    let mut parts = vec![
        format!("{}: {} units", profiles.device.name, profiles.device.units),
        format!(
            "requests per second at most with {} % in time, found to 1 %, seed {}; weft in relation to the best that shares\n\
             time alone or space by fixed partitions, and to the best of all others; its worst model at that load",
            most_load::TARGET * 100.0,
            options.seed
        ),
        most_load::table(&cases, &found).render(),
    ];
    if !moved.is_empty() {
        parts.push(moving::ABOUT.to_string());
        parts.push(moving::table(&moved).render());
    }
    Ok(terminal::print(&parts.join("\n\n"))?)
}

/// The mixes that were asked for, under each objective.
fn cases(options: &Options, profiles: &ProfileSet) -> Result<Vec<Case>> {
    let is_asked_for = |mix: &&mixes::Mix| {
        options.mixes.is_empty() || options.mixes.iter().any(|name| name == mix.name)
    };
    let mut cases = Vec::new();
    for &slo_factor in &options.slo {
        for mix in mixes::ALL.iter().filter(is_asked_for) {
            let mut world = mix.world(profiles, slo_factor)?;
            world.seed = options.seed;
            if !mix.is_moving {
                world.length = Span::from_s(options.seconds);
            }
            cases.push(Case { mix: mix.name, slo_factor, is_moving: mix.is_moving, world });
        }
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn named(arguments: &str) -> Vec<(String, f64)> {
        let line = ["sharing"].into_iter().chain(arguments.split_whitespace());
        let options = Line::try_parse_from(line).unwrap().options;
        let cases = cases(&options, &mixes::profiles(None).unwrap()).unwrap();
        cases.iter().map(|case| (case.name(), case.world.length.seconds())).collect()
    }

    #[test]
    fn every_mix_is_played_under_every_objective_unless_asked_otherwise() {
        assert_eq!(named("").len(), 2 * mixes::ALL.len());
        let few = named("--mixes e,a --slo 3 --seconds 0.5");
        assert_eq!(few, [("a at 3x".to_string(), 0.5), ("e at 3x".to_string(), 40.0)]);
    }
}
