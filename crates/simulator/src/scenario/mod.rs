//! Workload files: text in, a world out. `docs/simulation.md` is their description.

mod load;
mod model;
mod objective;
mod profiles;
mod traces;

use weft_scheduler::document::{self, Item, Problems, Section};
use weft_scheduler::{ProfileSet, Span};

use crate::trace::Trace;
use crate::world::{SimulatedModel, World};

pub use load::read_load;
pub use traces::Traces;

/// How long a partition takes to make, and each model on it: on an H200 a context takes about 1.5 ms, and a further
/// partition with the graph of one model 73 ms; see `docs/performance.md`.
const PREPARATION_MS: f64 = 2.0;
const PREPARATION_PER_MODEL_MS: f64 = 73.0;

/// How long a layout is searched for.
const PLANNING_MS: f64 = 200.0;

/// The most devices of one workload.
const MAX_DEVICES: u32 = 100_000;

/// What a workload file describes.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// A device with all models.
    pub world: World,
    /// How many such devices there are for them.
    pub devices: u32,
}

/// The files that a workload names, by the names that it gives them. Who has one of them not to give has to say the reason
/// elsewhere; the rest of the workload is then read for what is wrong there.
pub trait WorkloadFiles {
    /// A file of profiles.
    fn profiles(&mut self, name: &str) -> Option<ProfileSet>;

    /// A trace.
    fn trace(&mut self, name: &str) -> Option<Trace>;
}

/// What models are read with: the profiles, and the traces that were named so far.
struct Named<'a> {
    set: Option<ProfileSet>,
    traces: Traces<'a>,
}

impl Scenario {
    /// Reads a workload file, or says all that is wrong with it.
    pub fn from_toml(text: &str, files: &mut dyn WorkloadFiles) -> Result<Self, Problems> {
        document::read(text, |mut root, problems| {
            let file = root.required("profiles", problems).and_then(|item| item.text(problems));
            let set = file.and_then(|name| files.profiles(name));
            let mut read_trace = |name: &str| files.trace(name);
            let mut named = Named { set, traces: Traces::new(&mut read_trace) };
            let seconds = number(&mut root, "seconds", 10.0, problems);
            let seed = root.optional("seed").map_or(Some(1), |item| item.count(problems));
            let noise = share(&mut root, "noise", 0.0, problems);
            let preparation_ms = share(&mut root, "preparation_ms", PREPARATION_MS, problems);
            let per_model_ms =
                share(&mut root, "preparation_per_model_ms", PREPARATION_PER_MODEL_MS, problems);
            let interrupts = root.optional("can_interrupt");
            let can_interrupt = interrupts.map_or(Some(false), |item| item.flag(problems));
            let planning_ms = share(&mut root, "planning_ms", PLANNING_MS, problems);
            let devices = count(&mut root, "devices", MAX_DEVICES, problems);
            let models = root.required("models", problems);
            let models = models.and_then(|item| models_of(&item, &mut named, problems));
            root.close(problems);
            let device = named.set?.device;
            let world = World {
                models: models?,
                units: device.units,
                bandwidth_bytes_per_s: device.bandwidth_bytes_per_s,
                memory_bytes: device.memory_bytes,
                can_interrupt: can_interrupt?,
                preparation: Span::from_us(preparation_ms? * 1e3),
                preparation_per_model: Span::from_us(per_model_ms? * 1e3),
                planning: Span::from_us(planning_ms? * 1e3),
                mixes: Vec::new(),
                noise: noise?,
                length: Span::from_s(seconds?),
                seed: u64::from(seed?),
            };
            Some(Self { world, devices: devices? })
        })
    }
}

fn models_of(
    models: &Item<'_>,
    named: &mut Named<'_>,
    problems: &mut Problems,
) -> Option<Vec<SimulatedModel>> {
    let mut all = Vec::new();
    let mut entries = models.section(problems)?.entries().peekable();
    if entries.peek().is_none() {
        problems.note(models.line(), "'models' must hold at least one model");
    }
    for model in entries {
        let section = model.section(problems);
        let read = section.and_then(|section| model::read(&model, section, named, problems));
        all.extend(read.into_iter().flatten());
    }
    Some(all)
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

/// A whole number of at least 1, which is 1 where it is not given, and at most a limit.
fn count(
    section: &mut Section<'_>,
    key: &'static str,
    limit: u32,
    problems: &mut Problems,
) -> Option<u32> {
    let Some(item) = section.optional(key) else { return Some(1) };
    let count = item.count(problems)?;
    if count > limit {
        problems.note(item.line(), format!("'{key}' is at most {limit}"));
        return None;
    }
    Some(count)
}

#[cfg(test)]
mod tests;
