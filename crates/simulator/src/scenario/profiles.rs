//! The profiles of one model of a workload file.

use weft_scheduler::document::{Item, Problems};
use weft_scheduler::{Profile, ProfileSet, Span};

const BYTES_PER_MB: f64 = 1e6;

/// A profile, and how long one item takes alone on the whole device.
#[derive(Clone, Copy)]
pub(super) struct Measured<'a> {
    pub(super) profile: &'a Profile,
    pub(super) alone: Span,
}

/// The profiles that copies of a model take in turns: the one of its own name unless others are named.
pub(super) fn read<'a>(
    model: &Item<'_>,
    named: Option<Vec<Item<'_>>>,
    set: &'a ProfileSet,
    problems: &mut Problems,
) -> Option<Vec<Measured<'a>>> {
    let Some(named) = named else {
        return Some(vec![profile_of(model.name(), model.line(), set, problems)?]);
    };
    let profiles: Vec<Option<Measured<'a>>> = named
        .iter()
        .map(|item| profile_of(item.text(problems)?, item.line(), set, problems))
        .collect();
    profiles.into_iter().collect()
}

fn profile_of<'a>(
    name: &str,
    line: usize,
    set: &'a ProfileSet,
    problems: &mut Problems,
) -> Option<Measured<'a>> {
    let Some(profile) = set.profiles.get(name) else {
        let known: Vec<&str> = set.profiles.keys().map(String::as_str).collect();
        let what = format!("there is no profile '{name}'; there are {}", known.join(", "));
        problems.note(line, what);
        return None;
    };
    if profile.memory_bytes > set.device.memory_bytes {
        let what = format!(
            "'{name}' takes {:.0} MB of memory, and the device has {:.0}",
            profile.memory_bytes as f64 / BYTES_PER_MB,
            set.device.memory_bytes as f64 / BYTES_PER_MB
        );
        problems.note(line, what);
    }
    Some(Measured { profile, alone: profile.latency(1, set.device.units) })
}
