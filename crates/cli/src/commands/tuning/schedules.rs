//! `weft tuning dump --schedules`: how mixes share a device, for people.

use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value as Json, json};
use weft_device::Platform;
use weft_engine::regulation::written_models;
use weft_tuner::database::{Database, RecordedSchedule, ScheduleKey, unix_ms_now};

use super::age::ago;
use super::{counted, is_called};
use crate::table::Table;
use crate::terminal;

type Found = (ScheduleKey, RecordedSchedule);

pub(super) fn dump(database: &Database, chip: Option<&str>, is_json: bool) -> Result<()> {
    let mut found = database.recorded_schedules()?;
    if let Some(chip) = chip {
        found.retain(|(key, _)| is_called(&key.platform, chip));
        if found.is_empty() {
            bail!(
                "no schedule was found for a chip with '{chip}' in its name: `weft tuning list` shows which there are"
            );
        }
    }
    let text = match is_json {
        true => format!("{:#}", report(&found)),
        false => described(&found),
    };
    Ok(terminal::print(&text)?)
}

fn described(found: &[Found]) -> String {
    // They are in the order of their keys, and so of their platforms.
    let platforms = found.chunk_by(|(one, _), (other, _)| one.platform == other.platform);
    let mut parts: Vec<String> = platforms.map(of_platform).collect();
    parts.push(counted(found.len(), "schedule"));
    parts.join("\n\n")
}

fn of_platform(found: &[Found]) -> String {
    let Platform { chip, driver, kernels } = &found[0].0.platform;
    let mut table = Table::new(["mix", "how", "units", "time, ms", "gain", "found"]);
    for (key, schedule) in found {
        let age = Duration::from_millis(unix_ms_now().saturating_sub(schedule.recorded_unix_ms));
        // Models are told apart by what they compute; names are there for people.
        let (how, models) = key.mix.split_once("; ").unwrap_or(("", &key.mix));
        let named = written_models(&schedule.stages).map(|names| together(&names));
        table.row([
            named.unwrap_or_else(|| models.to_string()),
            how.to_string(),
            key.units.to_string(),
            format!("{:.3}", schedule.time.as_secs_f64() * 1e3),
            gain(schedule).map(|gain| format!("{gain:.2}")).unwrap_or_default(),
            ago(age),
        ]);
    }
    format!("{chip}, driver {driver}, kernels {kernels}\n\n{}", table.render())
}

/// The models of a mix, each once: those that are the same have numbers, and may be many.
fn together(names: &[String]) -> String {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for name in names {
        let name = without_number(name);
        match counted.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counted.push((name, 1)),
        }
    }
    let models = counted.into_iter().map(|(name, count)| match count {
        1 => name.to_string(),
        _ => format!("{name} x {count}"),
    });
    models.collect::<Vec<_>>().join(" + ")
}

fn without_number(name: &str) -> &str {
    let numbered = name.strip_suffix(')').and_then(|name| name.rsplit_once(" ("));
    numbered.filter(|(_, number)| number.parse::<u32>().is_ok()).map_or(name, |(name, _)| name)
}

/// The gain, where both times were measured.
fn gain(schedule: &RecordedSchedule) -> Option<f64> {
    Some(schedule.gain()).filter(|gain| gain.is_finite() && *gain > 0.0)
}

fn report(found: &[Found]) -> Json {
    let schedule = |(key, schedule): &Found| {
        json!({
            "chip": key.platform.chip,
            "driver": key.platform.driver,
            "kernels": key.platform.kernels,
            "mix": key.mix,
            "models": written_models(&schedule.stages),
            "units": key.units,
            "stages": schedule.stages,
            "time_us": schedule.time.as_secs_f64() * 1e6,
            "in_turns_time_us": schedule.in_turns_time.as_secs_f64() * 1e6,
            "gain": gain(schedule),
            "recorded_unix_ms": schedule.recorded_unix_ms,
        })
    };
    json!({ "schedules": found.iter().map(schedule).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_are_the_same_are_named_once() {
        for (names, said) in [
            (&["a b1", "c b2"][..], "a b1 + c b2"),
            (&["a b1 (1)", "c b1", "a b1 (2)", "a b2"], "a b1 x 2 + c b1 + a b2"),
            (&["a (x)", "(1)"], "a (x) + (1)"),
        ] {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            assert_eq!(together(&names), said);
        }
    }
}
