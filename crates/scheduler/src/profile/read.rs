//! The profile file as text in, profiles out. `docs/profiles.md` is its description.

use std::collections::BTreeMap;

use super::set::{ProfileSet, ProfiledDevice};
use super::table::{Profile, ProfilePoint};
use super::{BYTES_PER_GB, BYTES_PER_MB};
use crate::document::{self, Item, Problems, Section};
use crate::time::Span;

impl ProfileSet {
    /// Reads a profile file, or says all that is wrong with it.
    pub fn from_toml(text: &str) -> Result<Self, Problems> {
        document::read(text, |mut root, problems| {
            let device = root.required("device", problems);
            let device = device.and_then(|item| device_of(item.section(problems)?, problems));
            let models = root.required("models", problems);
            let profiles = models.and_then(|item| profiles_of(&item, device.as_ref(), problems));
            root.close(problems);
            Some(Self { device: device?, profiles: profiles? })
        })
    }
}

fn device_of(mut section: Section<'_>, problems: &mut Problems) -> Option<ProfiledDevice> {
    let name = section.required("name", problems).and_then(|item| item.text(problems));
    let units = section.required("units", problems).and_then(|item| item.count(problems));
    let unit = section.required("unit", problems).and_then(|item| item.text(problems));
    let bandwidth = section.required("bandwidth_gb_per_s", problems);
    let bandwidth = bandwidth.and_then(|item| item.positive(problems));
    let memory = section.required("memory_mb", problems).and_then(|item| item.positive(problems));
    section.close(problems);
    Some(ProfiledDevice {
        name: name?.to_string(),
        units: units?,
        unit: unit?.to_string(),
        bandwidth_bytes_per_s: (bandwidth? * BYTES_PER_GB).round(),
        memory_bytes: (memory? * BYTES_PER_MB).round() as u64,
    })
}

fn profiles_of(
    models: &Item<'_>,
    device: Option<&ProfiledDevice>,
    problems: &mut Problems,
) -> Option<BTreeMap<String, Profile>> {
    let mut profiles = BTreeMap::new();
    let line = models.line();
    for model in models.section(problems)?.entries() {
        let section = model.section(problems);
        let profile = section.and_then(|section| profile_of(section, device, problems));
        profiles.extend(profile.map(|profile| (model.name().to_string(), profile)));
    }
    if profiles.is_empty() && problems.is_empty() {
        problems.note(line, "'models' must hold at least one model");
    }
    Some(profiles)
}

fn profile_of(
    mut section: Section<'_>,
    device: Option<&ProfiledDevice>,
    problems: &mut Problems,
) -> Option<Profile> {
    let line = section.line();
    let batches = section.required("batches", problems);
    let batches = batches.and_then(|item| axis(&item, None, problems));
    let units = section.required("units", problems);
    let most_units = device.map(|device| device.units);
    let units = units.and_then(|item| axis(&item, most_units, problems));
    let latency = section.required("latency_us", problems);
    let dram = section.required("dram_mb", problems);
    let memory = section.required("memory_mb", problems).and_then(|item| item.positive(problems));
    section.close(problems);

    let axes = Axes { batches: batches.as_deref(), units: units.as_deref() };
    let latency_us =
        latency.and_then(|item| grid(&item, axes, problems, |cell, p| cell.positive(p)));
    let dram_mb = dram.and_then(|item| spread(&item, axes, problems));
    let (batches, units) = (batches?, units?);
    let (latency_us, dram_mb, memory) = (latency_us?, dram_mb?, memory?);
    let cells = batches.iter().flat_map(|&batch| units.iter().map(move |&units| (batch, units)));
    let points: Vec<ProfilePoint> = cells
        .zip(latency_us.into_iter().zip(dram_mb))
        .map(|((batch, units), (latency_us, dram_mb))| ProfilePoint {
            batch,
            units,
            latency: Span::from_us(latency_us),
            dram_bytes: (dram_mb * BYTES_PER_MB).round(),
        })
        .collect();
    match Profile::new(&points, (memory * BYTES_PER_MB).round() as u64) {
        Ok(profile) => Some(profile),
        Err(error) => {
            problems.note(line, error.to_string());
            None
        }
    }
}

/// Batch sizes or numbers of units, in any order, none of them twice.
fn axis(item: &Item<'_>, most: Option<u32>, problems: &mut Problems) -> Option<Vec<u32>> {
    let mut values = Vec::new();
    let mut is_good = true;
    for entry in item.list(problems)? {
        let Some(value) = entry.count(problems) else {
            is_good = false;
            continue;
        };
        let wrong = if values.contains(&value) {
            Some(format!("{value} is given twice in '{}'", item.name()))
        } else {
            most.filter(|&most| value > most)
                .map(|most| format!("{value} in '{}', but the device has {most}", item.name()))
        };
        if let Some(wrong) = wrong {
            problems.note(entry.line(), wrong);
            is_good = false;
        }
        values.push(value);
    }
    is_good.then_some(values)
}

/// What a table is over; where an axis is wrong itself, tables are read all the same, for what else is wrong.
#[derive(Clone, Copy)]
struct Axes<'a> {
    batches: Option<&'a [u32]>,
    units: Option<&'a [u32]>,
}

/// One row per batch with one number per number of units; by batch, then by units.
fn grid(
    item: &Item<'_>,
    axes: Axes<'_>,
    problems: &mut Problems,
    read: impl Fn(&Item<'_>, &mut Problems) -> Option<f64>,
) -> Option<Vec<f64>> {
    let rows = item.list(problems)?;
    let mut is_full =
        is_one_for_each(item, (rows.len(), "rows"), "batches", axes.batches, problems);
    let mut cells = Vec::new();
    for row in rows {
        let Some(numbers) = row.list(problems) else {
            is_full = false;
            continue;
        };
        let count = (numbers.len(), "numbers");
        is_full &= is_one_for_each(&row, count, "units", axes.units, problems);
        for number in numbers {
            let number = read(&number, problems);
            is_full &= number.is_some();
            cells.extend(number);
        }
    }
    is_full.then_some(cells)
}

/// One number for all executions, one per batch, or a full grid.
fn spread(item: &Item<'_>, axes: Axes<'_>, problems: &mut Problems) -> Option<Vec<f64>> {
    if !item.is_list() {
        let number = item.not_negative(problems)?;
        return Some(vec![number; axes.batches?.len() * axes.units?.len()]);
    }
    let rows = item.list(problems)?;
    if rows.iter().any(Item::is_list) {
        return grid(item, axes, problems, |cell, p| cell.not_negative(p));
    }
    let count = (rows.len(), "numbers");
    let mut is_full = is_one_for_each(item, count, "batches", axes.batches, problems);
    let mut cells = Vec::new();
    for number in rows.iter().map(|row| row.not_negative(problems)) {
        is_full &= number.is_some();
        cells.extend(axes.units.into_iter().flatten().filter_map(|_| number));
    }
    is_full.then_some(cells)
}

/// Notes where a table has not as many rows or numbers as its axis has values.
fn is_one_for_each(
    item: &Item<'_>,
    (count, what): (usize, &str),
    axis: &str,
    values: Option<&[u32]>,
    problems: &mut Problems,
) -> bool {
    let Some(needed) = values.map(<[u32]>::len) else { return false };
    if count != needed {
        let table = item.name();
        let what = format!(
            "'{table}' has {count} {what}, one for each of the {needed} '{axis}' is needed"
        );
        problems.note(item.line(), what);
    }
    count == needed
}
