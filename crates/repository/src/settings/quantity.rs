//! Numbers with a unit in their key, addresses and paths, each within bounds.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weft_scheduler::document::{Item, Problems, Section};

/// The longest time that can be set: longer ones are mistakes, and would not fit everywhere.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;
/// The most memory that can be set, in MiB: a pebibyte.
const MAX_MEBIBYTES: f64 = (1u64 << 30) as f64;

/// The value of a key, where it is given and can be read so.
pub(super) fn given<'a, T>(
    section: &mut Section<'a>,
    key: &'static str,
    problems: &mut Problems,
    read: impl FnOnce(&Item<'a>, &mut Problems) -> Option<T>,
) -> Option<T> {
    section.optional(key).and_then(|item| read(&item, problems))
}

pub(super) fn flag(item: &Item<'_>, problems: &mut Problems) -> Option<bool> {
    item.flag(problems)
}

pub(super) fn count(item: &Item<'_>, problems: &mut Problems) -> Option<u32> {
    item.count(problems)
}

pub(super) fn positive(item: &Item<'_>, problems: &mut Problems) -> Option<f64> {
    item.positive(problems)
}

pub(super) fn text(item: &Item<'_>, problems: &mut Problems) -> Option<String> {
    item.text(problems).map(str::to_string)
}

pub(super) fn seconds(item: &Item<'_>, problems: &mut Problems) -> Option<Duration> {
    let seconds = at_most(item, item.positive(problems)?, MAX_SECONDS, problems)?;
    Duration::try_from_secs_f64(seconds).ok()
}

pub(super) fn milliseconds(item: &Item<'_>, problems: &mut Problems) -> Option<Duration> {
    let milliseconds = at_most(item, item.positive(problems)?, MAX_SECONDS * 1e3, problems)?;
    Duration::try_from_secs_f64(milliseconds * 1e-3).ok()
}

/// Bytes from a number of MiB.
pub(super) fn mebibytes(item: &Item<'_>, problems: &mut Problems) -> Option<u64> {
    let mebibytes = at_most(item, item.positive(problems)?, MAX_MEBIBYTES, problems)?;
    Some((mebibytes * f64::from(1u32 << 20)) as u64)
}

fn at_most(item: &Item<'_>, number: f64, most: f64, problems: &mut Problems) -> Option<f64> {
    let fits = number <= most;
    if !fits {
        problems.note(item.line(), format!("'{}' is at most {most}", item.name()));
    }
    fits.then_some(number)
}

/// An address to listen at, such as `127.0.0.1:8000`, or `None` where nothing shall listen: `"off"`.
pub(super) fn address(item: &Item<'_>, problems: &mut Problems) -> Option<Option<SocketAddr>> {
    let text = item.text(problems)?;
    if text == "off" {
        return Some(None);
    }
    let address = text.parse().ok();
    if address.is_none() {
        let what = format!(
            "'{}' must be an address and a port such as 127.0.0.1:8000, or off, not '{text}'",
            item.name()
        );
        problems.note(item.line(), what);
    }
    address.map(Some)
}

/// A path, from the folder that the file lies in.
pub(super) fn path_from(
    folder: &Path,
) -> impl FnOnce(&Item<'_>, &mut Problems) -> Option<PathBuf> + '_ {
    |item, problems| item.text(problems).map(|text| folder.join(text))
}

/// One of a few values by name.
pub(super) fn named<T: Copy + Display>(
    known: &[T],
) -> impl FnOnce(&Item<'_>, &mut Problems) -> Option<T> + '_ {
    move |item, problems| {
        let text = item.text(problems)?;
        let found = known.iter().find(|value| value.to_string() == text).copied();
        if found.is_none() {
            let names: Vec<String> = known.iter().map(ToString::to_string).collect();
            let what =
                format!("'{}' must be one of {}, not '{text}'", item.name(), names.join(", "));
            problems.note(item.line(), what);
        }
        found
    }
}
