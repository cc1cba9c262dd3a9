//! Scenarios: a workload file as text in, a world out. `docs/simulation.md` is its description.

use std::sync::Arc;

use weft_scheduler::document::{self, Item, Problems, Section};
use weft_scheduler::plan::Slo;
use weft_scheduler::{Profile, ProfileSet, Span};

use crate::arrivals::Load;
use crate::world::{SimulatedModel, World};

/// How long making a partition ready takes where the file does not say: what was measured on an H200 for a further
/// partition with its graph, see `docs/performance.md`.
const PREPARATION_MS: f64 = 75.0;

/// The most copies of one model.
const MAX_COPIES: u32 = 10_000;

/// What a workload file says before the profiles that it names are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The file of profiles, as the workload file names it.
    pub profiles: String,
    seconds: f64,
    seed: u32,
    noise: f64,
    preparation_ms: f64,
    models: Vec<ScenarioModel>,
}

#[derive(Clone, Debug, PartialEq)]
struct ScenarioModel {
    name: String,
    line: usize,
    /// Copies take them in turns.
    profiles: Vec<String>,
    load: Load,
    slo: Objective,
    percentile: f64,
    weight: f64,
    priority: u8,
    copies: u32,
    /// The exponent of Zipf's law, by which copies divide the rate; without it each has all of it.
    zipf: Option<f64>,
}

impl ScenarioModel {
    /// The share of the rate that each copy has.
    fn shares(&self) -> Vec<f64> {
        let copies = 1..=self.copies;
        let Some(exponent) = self.zipf else { return copies.map(|_| 1.0).collect() };
        let weights: Vec<f64> = copies.map(|rank| f64::from(rank).powf(-exponent)).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    }
}

/// How late an answer may be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Objective {
    None,
    Latency(Span),
    /// Times the latency of one item alone on the whole device.
    Factor(f64),
}

impl Scenario {
    /// Reads a workload file, or says all that is wrong with it.
    pub fn from_toml(text: &str) -> Result<Self, Problems> {
        document::read(text, |mut root, problems| {
            let profiles = root.required("profiles", problems).and_then(|item| item.text(problems));
            let seconds = number(&mut root, "seconds", 10.0, problems);
            let seed = root.optional("seed").map_or(Some(1), |item| item.count(problems));
            let noise = share(&mut root, "noise", 0.0, problems);
            let preparation_ms = share(&mut root, "preparation_ms", PREPARATION_MS, problems);
            let models = root.required("models", problems);
            let models = models.and_then(|item| models_of(&item, problems));
            root.close(problems);
            Some(Self {
                profiles: profiles?.to_string(),
                seconds: seconds?,
                seed: seed?,
                noise: noise?,
                preparation_ms: preparation_ms?,
                models: models?,
            })
        })
    }

    /// The world that it describes, with the profiles that it names; or the models that have none, with their lines.
    pub fn world(&self, set: &ProfileSet) -> Result<World, Vec<(usize, String)>> {
        let mut models = Vec::new();
        let mut missing = Vec::new();
        for model in &self.models {
            let mut profiles = Vec::new();
            for name in &model.profiles {
                match set.profiles.get(name) {
                    Some(profile) => profiles.push(Arc::new(profile.clone())),
                    None => {
                        let known: Vec<&str> = set.profiles.keys().map(String::as_str).collect();
                        let known = known.join(", ");
                        missing.push((
                            model.line,
                            format!("there is no profile '{name}'; there are {known}"),
                        ));
                    }
                }
            }
            if profiles.len() < model.profiles.len() {
                continue;
            }
            models.extend(model.shares().iter().enumerate().map(|(copy, &share)| {
                let profile = &profiles[copy % profiles.len()];
                SimulatedModel {
                    name: match model.copies {
                        1 => model.name.clone(),
                        _ => format!("{} {}", model.name, copy + 1),
                    },
                    load: model.load.scaled(share),
                    slo: objective(model.slo, profile, set.device.units)
                        .map(|latency| Slo { percentile: model.percentile, latency }),
                    profile: profile.clone(),
                    weight: model.weight,
                    priority: model.priority,
                }
            }));
        }
        if !missing.is_empty() {
            return Err(missing);
        }
        Ok(World {
            models,
            units: set.device.units,
            bandwidth_bytes_per_s: set.device.bandwidth_bytes_per_s,
            memory_bytes: set.device.memory_bytes,
            preparation: Span::from_us(self.preparation_ms * 1e3),
            noise: self.noise,
            length: Span::from_s(self.seconds),
            seed: u64::from(self.seed),
        })
    }
}

fn objective(slo: Objective, profile: &Profile, units: u32) -> Option<Span> {
    match slo {
        Objective::None => None,
        Objective::Latency(latency) => Some(latency),
        Objective::Factor(factor) => Some(profile.latency(1, units) * factor),
    }
}

fn models_of(models: &Item<'_>, problems: &mut Problems) -> Option<Vec<ScenarioModel>> {
    let mut all = Vec::new();
    for model in models.section(problems)?.entries() {
        let section = model.section(problems);
        all.extend(section.and_then(|section| model_of(&model, section, problems)));
    }
    if all.is_empty() && problems.is_empty() {
        problems.note(models.line(), "'models' must hold at least one model");
    }
    Some(all)
}

fn model_of(
    item: &Item<'_>,
    mut section: Section<'_>,
    problems: &mut Problems,
) -> Option<ScenarioModel> {
    let name = item.name().to_string();
    let profiles = match section.optional("profile") {
        None => Some(vec![name.clone()]),
        Some(item) => profile_names(&item, problems),
    };
    let load = load_of(&mut section, problems);
    let slo_ms = section.optional("slo_ms").map(|item| item.positive(problems));
    let factor_item = section.optional("slo_factor");
    let factor = factor_item.as_ref().map(|item| item.positive(problems));
    let slo = match (slo_ms, factor) {
        (None, None) => Some(Objective::None),
        (Some(ms), None) => ms.map(|ms| Objective::Latency(Span::from_us(ms * 1e3))),
        (None, Some(factor)) => factor.map(Objective::Factor),
        (Some(_), Some(_)) => {
            let line = factor_item.map_or(item.line(), |item| item.line());
            problems
                .note(line, "'slo_ms' and 'slo_factor' contradict each other; give one of them");
            None
        }
    };
    let percentile = section.optional("percentile").map_or(Some(0.99), |item| {
        let share = item.positive(problems)?;
        let is_share = share < 1.0;
        if !is_share {
            problems.note(item.line(), "'percentile' is a share below 1, such as 0.99");
        }
        is_share.then_some(share)
    });
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
    let zipf = match section.optional("zipf") {
        None => Some(None),
        Some(item) => item.positive(problems).map(Some),
    };
    section.close(problems);
    Some(ScenarioModel {
        name,
        line: item.line(),
        profiles: profiles?,
        load: load?,
        slo: slo?,
        percentile: percentile?,
        weight: weight?,
        priority: priority?,
        copies: copies?,
        zipf: zipf?,
    })
}

/// One name, or a list of them.
fn profile_names(item: &Item<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    let items = if item.is_list() { item.list(problems)? } else { vec![*item] };
    items.iter().map(|item| item.text(problems).map(str::to_string)).collect()
}

fn load_of(section: &mut Section<'_>, problems: &mut Problems) -> Option<Load> {
    let rate = section.required("rate", problems).and_then(|item| item.not_negative(problems));
    let burstiness = section.optional("burstiness").map(|item| item.positive(problems));
    let low = section.optional("low_rate").map(|item| item.not_negative(problems));
    let period = number(section, "period_s", 10.0, problems);
    let high_share = share(section, "high_share", 0.5, problems);
    let phase = share(section, "phase_s", 0.0, problems);
    match (burstiness, low) {
        (None, None) => Some(Load::Poisson { rate_per_s: rate? }),
        (Some(burstiness), None) => {
            Some(Load::Gamma { rate_per_s: rate?, burstiness: burstiness? })
        }
        (None, Some(low)) => Some(Load::SquareWave {
            high_per_s: rate?,
            low_per_s: low?,
            period: Span::from_s(period?),
            share: high_share?.min(1.0),
            phase: Span::from_s(phase?),
        }),
        (Some(_), Some(_)) => {
            problems.note(
                section.line(),
                "'burstiness' and 'low_rate' contradict each other; give one of them",
            );
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
";

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
        let scenario = Scenario::from_toml(text).unwrap();
        assert_eq!(scenario.profiles, "small.toml");
        let world = scenario.world(&ProfileSet::from_toml(PROFILES).unwrap()).unwrap();
        let names: Vec<&str> = world.models.iter().map(|model| model.name.as_str()).collect();
        assert_eq!(names, ["net 1", "net 2", "net 3", "other"]);
        assert_eq!(world.models[0].slo.unwrap().latency, Span::from_us(200.0));
        assert_eq!(world.models[3].slo, None);
        assert_eq!(world.models[3].load, Load::Gamma { rate_per_s: 50.0, burstiness: 4.0 });
        assert_eq!((world.units, world.length), (4, Span::from_s(2.0)));
    }

    #[test]
    fn copies_divide_the_rate_by_rank_and_take_profiles_in_turns() {
        let profiles = PROFILES.to_string()
            + &PROFILES[PROFILES.find("[models").unwrap()..].replace("net", "web");
        let text = "
profiles = 'small.toml'
[models.many]
profile = ['net', 'web']
rate = 220
copies = 4
zipf = 1
";
        let set = ProfileSet::from_toml(&profiles).unwrap();
        let world = Scenario::from_toml(text).unwrap().world(&set).unwrap();
        let rates =
            world.models.iter().map(|model| model.load.rate_per_s(weft_scheduler::Time::START));
        let rates: Vec<f64> = rates.map(|rate| (rate * 25.0 / 12.0).round()).collect();
        // The sum of 1, 1/2, 1/3 and 1/4 is 25/12.
        assert_eq!(rates, [220.0, 110.0, 73.0, 55.0]);
        let profile = |index: usize| &*world.models[index].profile;
        assert_eq!((profile(0), profile(1)), (&set.profiles["net"], &set.profiles["web"]));
        assert_eq!(profile(0), profile(2));
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once_with_its_line() {
        let text = "profiles = 'x.toml'
seconds = 0
[models.a]
rate = -1
slo_ms = 3
slo_factor = 2
[models.b]
speed = 9
";
        let problems = Scenario::from_toml(text).unwrap_err();
        let lines: Vec<usize> = problems.as_slice().iter().map(|problem| problem.line).collect();
        for line in [2, 4, 6, 7, 8] {
            assert!(lines.contains(&line), "line {line} in {problems}");
        }
        let unknown = Scenario::from_toml("profiles = 'x'\n[models.unheard]\nrate = 1\n").unwrap();
        let missing = unknown.world(&ProfileSet::from_toml(PROFILES).unwrap()).unwrap_err();
        assert_eq!(missing[0].0, 2);
    }
}
