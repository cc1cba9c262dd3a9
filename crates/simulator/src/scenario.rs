//! Workload files: text in, a world out. `docs/simulation.md` is their description.

use std::sync::Arc;

use weft_scheduler::document::{self, Item, Problems, Section};
use weft_scheduler::plan::Slo;
use weft_scheduler::{Profile, ProfileSet, Span};

use crate::load::Load;
use crate::world::{SimulatedModel, World};

/// How long making a partition ready takes where the file does not say: what was measured on an H200 for a further
/// partition with its graph, see `docs/performance.md`.
const PREPARATION_MS: f64 = 75.0;

/// The most copies of one model.
const MAX_COPIES: u32 = 10_000;

const BYTES_PER_MB: f64 = 1e6;

impl World {
    /// Reads a workload file, or says all that is wrong with it. `profiles` gets the name of the file of profiles as the
    /// workload gives it. Where it has none to give, for which it has to say the reason, the rest is read for what is
    /// wrong there.
    pub fn from_toml(
        text: &str,
        profiles: impl FnOnce(&str) -> Option<ProfileSet>,
    ) -> Result<Self, Problems> {
        document::read(text, |mut root, problems| {
            let file = root.required("profiles", problems).and_then(|item| item.text(problems));
            let set = file.and_then(profiles);
            let seconds = number(&mut root, "seconds", 10.0, problems);
            let seed = root.optional("seed").map_or(Some(1), |item| item.count(problems));
            let noise = share(&mut root, "noise", 0.0, problems);
            let preparation_ms = share(&mut root, "preparation_ms", PREPARATION_MS, problems);
            let models = root.required("models", problems);
            let models = models.and_then(|item| models_of(&item, set.as_ref(), problems));
            root.close(problems);
            let device = set?.device;
            Some(Self {
                models: models?,
                units: device.units,
                bandwidth_bytes_per_s: device.bandwidth_bytes_per_s,
                memory_bytes: device.memory_bytes,
                preparation: Span::from_us(preparation_ms? * 1e3),
                noise: noise?,
                length: Span::from_s(seconds?),
                seed: u64::from(seed?),
            })
        })
    }
}

fn models_of(
    models: &Item<'_>,
    set: Option<&ProfileSet>,
    problems: &mut Problems,
) -> Option<Vec<SimulatedModel>> {
    let mut all = Vec::new();
    let mut entries = models.section(problems)?.entries().peekable();
    if entries.peek().is_none() {
        problems.note(models.line(), "'models' must hold at least one model");
    }
    for model in entries {
        let section = model.section(problems);
        let read = section.and_then(|section| model_of(&model, section, set, problems));
        all.extend(read.into_iter().flatten());
    }
    Some(all)
}

/// A model and its copies.
fn model_of(
    item: &Item<'_>,
    mut section: Section<'_>,
    set: Option<&ProfileSet>,
    problems: &mut Problems,
) -> Option<Vec<SimulatedModel>> {
    let names = match section.optional("profile") {
        Some(named) if named.is_list() => named.list(problems),
        Some(named) => Some(vec![named]),
        None => None,
    };
    let profiles = set.and_then(|set| profiles_of(item, names, set, problems));
    let load = load_of(&mut section, problems);
    let slos = slos_of(&mut section, item, profiles.as_deref(), problems);
    let weight = number(&mut section, "weight", 1.0, problems);
    let priority = section.optional("priority").map_or(Some(0), |item| {
        let priority = item.not_negative(problems)?;
        let fits = priority <= f64::from(u8::MAX) && priority.fract() == 0.0;
        if !fits {
            problems.note(item.line(), "'priority' is a whole number up to 255");
        }
        fits.then_some(priority as u8)
    });
    let copies = match section.optional("copies") {
        None => Some(1),
        Some(item) => item.count(problems).filter(|&copies| {
            let fits = copies <= MAX_COPIES;
            if !fits {
                problems.note(item.line(), format!("'copies' is at most {MAX_COPIES}"));
            }
            fits
        }),
    };
    let zipf = section.optional("zipf").map(|item| item.positive(problems));
    section.close(problems);
    let shares = shares(copies?, zipf);
    let (load, slos, weight, priority) = (load?, slos?, weight?, priority?);
    let profiles: Vec<Arc<Profile>> =
        profiles?.iter().map(|measured| Arc::new(measured.profile.clone())).collect();
    let copy = |(copy, share): (usize, f64)| SimulatedModel {
        name: match copies {
            Some(1) => item.name().to_string(),
            _ => format!("{} {}", item.name(), copy + 1),
        },
        profile: profiles[copy % profiles.len()].clone(),
        load: load.scaled(share),
        slo: slos[copy % profiles.len()],
        weight,
        priority,
    };
    Some(shares?.into_iter().enumerate().map(copy).collect())
}

/// The share of the rate that each copy has: all of it, or what Zipf's law with an exponent gives its rank.
fn shares(copies: u32, zipf: Option<Option<f64>>) -> Option<Vec<f64>> {
    let Some(exponent) = zipf else { return Some(vec![1.0; copies as usize]) };
    let exponent = exponent?;
    let weights: Vec<f64> = (1..=copies).map(|rank| f64::from(rank).powf(-exponent)).collect();
    let sum: f64 = weights.iter().sum();
    Some(weights.iter().map(|weight| weight / sum).collect())
}

/// A profile, and how long one item takes alone on the whole device.
#[derive(Clone, Copy)]
struct Measured<'a> {
    profile: &'a Profile,
    alone: Span,
}

/// The profiles that copies of a model take in turns: the one of its own name unless others are named.
fn profiles_of<'a>(
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

/// What is promised with each of the profiles, if anything: a latency, or a multiple of that of one item alone.
fn slos_of(
    section: &mut Section<'_>,
    model: &Item<'_>,
    profiles: Option<&[Measured<'_>]>,
    problems: &mut Problems,
) -> Option<Vec<Option<Slo>>> {
    let slo_ms = section.optional("slo_ms");
    let slo_factor = section.optional("slo_factor");
    let percentile_item = section.optional("percentile");
    let percentile = percentile_item.as_ref().map_or(Some(0.99), |item| {
        let share = item.positive(problems)?;
        let is_share = share < 1.0;
        if !is_share {
            problems.note(item.line(), "'percentile' is a share below 1, such as 0.99");
        }
        is_share.then_some(share)
    });
    let (item, number) = match (slo_ms, slo_factor) {
        (None, None) => {
            if let Some(item) = percentile_item {
                let what = "'percentile' of no objective; give 'slo_ms' or 'slo_factor' too";
                problems.note(item.line(), what);
            }
            return Some(vec![None; profiles?.len()]);
        }
        (Some(item), None) | (None, Some(item)) => (item, item.positive(problems)?),
        (Some(_), Some(item)) => {
            let what = "'slo_ms' and 'slo_factor' contradict each other; give one of them";
            problems.note(item.line(), what);
            return None;
        }
    };
    let latency = |alone: Span| match slo_ms {
        Some(_) => Span::from_us(number * 1e3),
        None => alone * number,
    };
    let longest = profiles?.iter().map(|measured| measured.alone).max()?;
    if latency(longest) <= longest {
        let what = format!(
            "the objective of '{}', {}, cannot be kept: one item takes {longest} alone on the whole device",
            model.name(),
            latency(longest)
        );
        problems.note(item.line(), what);
    }
    let percentile = percentile?;
    let slos =
        profiles?.iter().map(|measured| Some(Slo { percentile, latency: latency(measured.alone) }));
    Some(slos.collect())
}

fn load_of(section: &mut Section<'_>, problems: &mut Problems) -> Option<Load> {
    let rate = section.required("rate", problems).and_then(|item| item.positive(problems));
    let burstiness_item = section.optional("burstiness");
    let burstiness = burstiness_item.map(|item| item.positive(problems));
    let low_item = section.optional("low_rate");
    let low = low_item.map(|item| item.not_negative(problems));
    let wave = ["period_s", "high_share", "phase_s"].map(|key| section.optional(key));
    if low.is_none() {
        for item in wave.iter().flatten() {
            let what = format!("'{}' of no square wave; give 'low_rate' too", item.name());
            problems.note(item.line(), what);
        }
    }
    let [period, high_share, phase] = wave;
    let period = period.map_or(Some(10.0), |item| item.positive(problems));
    let high_share = high_share.map_or(Some(0.5), |item| {
        let share = item.not_negative(problems)?;
        if share > 1.0 {
            problems.note(item.line(), "'high_share' is a share of the period, at most 1");
        }
        Some(share)
    });
    let phase = phase.map_or(Some(0.0), |item| item.not_negative(problems));
    match (burstiness, low) {
        (None, None) => Some(Load::Poisson { rate_per_s: rate? }),
        (Some(burstiness), None) => {
            Some(Load::Gamma { rate_per_s: rate?, burstiness: burstiness? })
        }
        (None, Some(low)) => {
            let (high_per_s, low_per_s) = (rate?, low?);
            if let Some(item) = low_item.filter(|_| low_per_s > high_per_s) {
                problems.note(item.line(), "'low_rate' is above 'rate'");
            }
            Some(Load::SquareWave {
                high_per_s,
                low_per_s,
                period: Span::from_s(period?),
                share: high_share?,
                phase: Span::from_s(phase?),
            })
        }
        (Some(_), Some(_)) => {
            let line = burstiness_item.map_or(section.line(), |item| item.line());
            let what = "'burstiness' and 'low_rate' contradict each other; give one of them";
            problems.note(line, what);
            None
        }
    }
}

/// A number above zero, or what stands for it where it is not given.
fn number(
    section: &mut Section<'_>,
    key: &'static str,
    default: f64,
    problems: &mut Problems,
) -> Option<f64> {
    section.optional(key).map_or(Some(default), |item| item.positive(problems))
}

/// A number that may be zero, likewise.
fn share(
    section: &mut Section<'_>,
    key: &'static str,
    default: f64,
    problems: &mut Problems,
) -> Option<f64> {
    section.optional(key).map_or(Some(default), |item| item.not_negative(problems))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILES: &str = "
[device]
name = 'small'
units = 4
unit = 'core'
bandwidth_gb_per_s = 10
memory_mb = 100

[models.net]
batches = [1, 4]
units = [1, 4]
latency_us = [[100, 40], [300, 110]]
dram_mb = 1
memory_mb = 1

[models.vast]
batches = [1]
units = [4]
latency_us = [[100]]
dram_mb = 1
memory_mb = 101
";

    fn read(text: &str) -> Result<World, Problems> {
        World::from_toml(text, |_| ProfileSet::from_toml(PROFILES).ok())
    }

    #[test]
    fn a_workload_becomes_a_world() {
        let text = "
profiles = 'small.toml'
seconds = 2
[models.net]
rate = 100
slo_factor = 5
copies = 3
[models.other]
profile = 'net'
rate = 50
burstiness = 4
";
        let mut named = String::new();
        let world = World::from_toml(text, |file| {
            named = file.to_string();
            ProfileSet::from_toml(PROFILES).ok()
        });
        assert_eq!(named, "small.toml");
        let world = world.unwrap();
        let names: Vec<&str> = world.models.iter().map(|model| model.name.as_str()).collect();
        assert_eq!(names, ["net 1", "net 2", "net 3", "other"]);
        assert_eq!(world.models[0].slo.unwrap().latency, Span::from_us(200.0));
        assert_eq!(world.models[3].slo, None);
        assert_eq!(world.models[3].load, Load::Gamma { rate_per_s: 50.0, burstiness: 4.0 });
        assert_eq!((world.units, world.length), (4, Span::from_s(2.0)));
    }

    #[test]
    fn copies_divide_the_rate_by_rank_and_take_profiles_in_turns() {
        let profiles = PROFILES.replace("memory_mb = 101", "memory_mb = 1");
        let text = "
profiles = 'small.toml'
[models.many]
profile = ['net', 'vast']
rate = 220
slo_factor = 2
copies = 4
zipf = 1
";
        let set = ProfileSet::from_toml(&profiles).unwrap();
        let world = World::from_toml(text, |_| Some(set.clone())).unwrap();
        let rates =
            world.models.iter().map(|model| model.load.rate_per_s(weft_scheduler::Time::START));
        let rates: Vec<f64> = rates.map(|rate| (rate * 25.0 / 12.0).round()).collect();
        // The sum of 1, 1/2, 1/3 and 1/4 is 25/12.
        assert_eq!(rates, [220.0, 110.0, 73.0, 55.0]);
        let profile = |index: usize| &*world.models[index].profile;
        assert_eq!((profile(0), profile(1)), (&set.profiles["net"], &set.profiles["vast"]));
        assert_eq!(profile(0), profile(2));
        let slo_us = |index: usize| world.models[index].slo.unwrap().latency.us();
        assert_eq!((slo_us(0), slo_us(1)), (80.0, 200.0));
    }

    const BAD: &str = "profiles = 'x.toml'
seconds = 0
[models.net]
rate = 0
slo_ms = 3
slo_factor = 2
[models.b]
speed = 9
[models.vast]
rate = 1
low_rate = 2
high_share = 1.5
slo_ms = 0.1
[models.c]
profile = 'net'
rate = 9
period_s = 3
percentile = 0.9
";

    #[test]
    fn everything_that_is_wrong_is_said_at_once_with_its_line() {
        let problems = read(BAD).unwrap_err();
        for part in [
            "line 2: 'seconds' must be",
            "line 4: 'rate' must be a number above 0",
            "line 6: 'slo_ms' and 'slo_factor' contradict",
            "line 7: there is no profile 'b'; there are net, vast",
            "line 7: 'rate' is missing",
            "line 8: unknown key 'speed'",
            "line 9: 'vast' takes 101 MB of memory, and the device has 100",
            "line 11: 'low_rate' is above 'rate'",
            "line 12: 'high_share' is",
            "line 13: the objective of 'vast', 100.0 us, cannot be kept: one item takes 100.0 us",
            "line 17: 'period_s' of no square wave",
            "line 18: 'percentile' of no objective",
        ] {
            assert!(problems.to_string().contains(part), "{part} in\n{problems}");
        }
    }

    #[test]
    fn without_profiles_the_rest_is_still_read() {
        let problems = World::from_toml(BAD, |_| None).unwrap_err();
        assert!(problems.to_string().contains("line 4: 'rate'"), "{problems}");
        assert!(!problems.to_string().contains("no profile"), "{problems}");
        let nothing_else = "profiles = 'x'\n[models.a]\nrate = 1\n";
        assert!(World::from_toml(nothing_else, |_| None).unwrap_err().is_empty());
    }
}
