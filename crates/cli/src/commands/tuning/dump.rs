//! `weft tuning dump`: what was picked, for people.

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value as Json, json};
use weft_device::Platform;
use weft_tuner::database::{Choice, Database, TaskKey};

use super::{counted, is_called, schedules};
use crate::table::Table;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  weft tuning dump
  weft tuning dump --schedules
  weft tuning dump --chip h200 --json | jq '.choices[] | select(.gain > 2)'

The gain is the time of the kernel that is taken where nothing is known, over the
time of the one that was picked; of a schedule, the time of the models one after
another over the time of the mix.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Only for chips with this in their name
    #[arg(long, value_name = "TEXT")]
    chip: Option<String>,
    /// Show the schedules of mixes: models, units, time, gain against one after another, age
    #[arg(long)]
    schedules: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(database: &Database, options: &Options) -> Result<()> {
    if options.schedules {
        return schedules::dump(database, options.chip.as_deref(), options.json);
    }
    let mut choices = database.recorded_choices()?;
    if let Some(chip) = &options.chip {
        choices.retain(|(task, _)| is_called(&task.platform, chip));
        if choices.is_empty() {
            bail!(
                "nothing was picked for a chip with '{chip}' in its name: `weft tuning list` shows which there are"
            );
        }
    }
    let text = match options.json {
        true => format!("{:#}", report(&choices)),
        false => described(&choices),
    };
    Ok(terminal::print(&text)?)
}

fn described(choices: &[(TaskKey, Choice)]) -> String {
    // Choices are in the order of their tasks, and so of their platforms.
    let platforms = choices.chunk_by(|(one, _), (other, _)| one.platform == other.platform);
    let mut parts: Vec<String> = platforms.map(of_platform).collect();
    parts.push(counted(choices.len(), "choice"));
    parts.join("\n\n")
}

fn of_platform(choices: &[(TaskKey, Choice)]) -> String {
    let Platform { chip, driver, kernels } = &choices[0].0.platform;
    let mut table =
        Table::new(["operator", "precision", "size", "candidate", "time, us", "gain", "trials"]);
    for (task, choice) in choices {
        table.row([
            task.operator.operator.clone(),
            task.operator.precision.clone(),
            task.partition_size.to_string(),
            choice.candidate.clone(),
            format!("{:.2}", choice.time.as_secs_f64() * 1e6),
            gain(choice).map(|gain| format!("{gain:.2}")).unwrap_or_default(),
            choice.trials.to_string(),
        ]);
    }
    let logarithms: Vec<f64> =
        choices.iter().filter_map(|(_, choice)| gain(choice)).map(f64::ln).collect();
    let mean = (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp();
    format!(
        "{chip}, driver {driver}, kernels {kernels}\n\n{}\n\ngeometric mean of the gains: {mean:.2}",
        table.render()
    )
}

/// The gain, where both times were measured.
fn gain(choice: &Choice) -> Option<f64> {
    Some(choice.gain()).filter(|gain| gain.is_finite() && *gain > 0.0)
}

fn report(choices: &[(TaskKey, Choice)]) -> Json {
    let choice = |(task, choice): &(TaskKey, Choice)| {
        json!({
            "chip": task.platform.chip,
            "driver": task.platform.driver,
            "kernels": task.platform.kernels,
            "operator": task.operator.operator,
            "precision": task.operator.precision,
            "partition_size": task.partition_size,
            "candidate": choice.candidate,
            "time_us": choice.time.as_secs_f64() * 1e6,
            "untuned_candidate": choice.untuned_candidate,
            "untuned_time_us": choice.untuned_time.as_secs_f64() * 1e6,
            "gain": gain(choice),
            "trials": choice.trials,
            "recorded_unix_ms": choice.recorded_unix_ms,
        })
    };
    json!({ "choices": choices.iter().map(choice).collect::<Vec<_>>() })
}
