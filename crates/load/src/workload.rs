//! Workload files: the models of one run, in the words of the simulator's. `docs/load.md` is their description.

use weft_scheduler::Span;
use weft_scheduler::document::{self, Item, Problems, Section};
use weft_simulator::{Trace, Traces, read_load};

use crate::model_load::{Dimensions, ModelLoad};

/// Keys that say how a device or a policy is simulated: a server has its own.
const OF_SIMULATIONS: [&str; 6] =
    ["profiles", "noise", "preparation_ms", "preparation_per_model_ms", "planning_ms", "devices"];
const OF_SIMULATED_MODELS: [&str; 5] = ["profile", "max_batch", "weight", "priority", "percentile"];

/// What a workload file asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// How long requests come; `None` where it does not say.
    pub length: Option<Span>,
    /// What arrivals are drawn from, likewise.
    pub seed: Option<u64>,
    /// In the order of their names.
    pub models: Vec<ModelLoad>,
}

impl Workload {
    /// Reads a workload file, or says all that is wrong with it. `read_trace` gives the traces that it names; where it has
    /// one of them not to give, it has to say the reason elsewhere.
    pub fn from_toml(
        text: &str,
        read_trace: &mut dyn FnMut(&str) -> Option<Trace>,
    ) -> Result<Self, Problems> {
        document::read(text, |mut root, problems| {
            let mut traces = Traces::new(read_trace);
            let seconds = root.optional("seconds").map(|item| item.positive(problems));
            let seed = root.optional("seed").map(|item| item.count(problems));
            pass_over(&mut root, &OF_SIMULATIONS);
            let models = root.required("models", problems);
            let models = models.and_then(|item| models_of(&item, &mut traces, problems));
            root.close(problems);
            Some(Self {
                length: seconds.flatten().map(Span::from_s),
                seed: seed.flatten().map(u64::from),
                models: models?,
            })
        })
    }
}

fn pass_over(section: &mut Section<'_>, keys: &[&'static str]) {
    for key in keys {
        section.optional(key);
    }
}

fn models_of(
    models: &Item<'_>,
    traces: &mut Traces<'_>,
    problems: &mut Problems,
) -> Option<Vec<ModelLoad>> {
    let mut all = Vec::new();
    let mut entries = models.section(problems)?.entries().peekable();
    if entries.peek().is_none() {
        problems.note(models.line(), "'models' must hold at least one model");
    }
    for model in entries {
        let section = model.section(problems);
        all.extend(section.and_then(|section| model_of(&model, section, traces, problems)));
    }
    Some(all)
}

fn model_of(
    model: &Item<'_>,
    mut section: Section<'_>,
    traces: &mut Traces<'_>,
    problems: &mut Problems,
) -> Option<ModelLoad> {
    let load = read_load(model.name(), &mut section, traces, problems);
    let slo = milliseconds(&mut section, "slo_ms", problems);
    let timeout = milliseconds(&mut section, "timeout_ms", problems);
    let dimensions = dimensions_of(&mut section, problems);
    for key in ["slo_factor", "copies", "zipf"] {
        if let Some(item) = section.optional(key) {
            let what = format!("'{key}' is for simulations only; give 'slo_ms' and models by name");
            problems.note(item.line(), what);
        }
    }
    pass_over(&mut section, &OF_SIMULATED_MODELS);
    section.close(problems);
    Some(ModelLoad { name: model.name().to_string(), load: load?, slo, timeout, dimensions })
}

fn milliseconds(
    section: &mut Section<'_>,
    key: &'static str,
    problems: &mut Problems,
) -> Option<Span> {
    let ms = section.optional(key)?.positive(problems)?;
    Some(Span::from_us(ms * 1e3))
}

/// Either one size, or a table of sizes by the input's name.
fn dimensions_of(section: &mut Section<'_>, problems: &mut Problems) -> Dimensions {
    let mut dimensions = Dimensions::default();
    if let Some(item) = section.optional("dimension") {
        dimensions.default = item.count(problems).unwrap_or(1) as usize;
    }
    let by_input = section.optional("dimensions").and_then(|item| item.section(problems));
    for item in by_input.into_iter().flat_map(Section::entries) {
        let size = item.count(problems).unwrap_or(1) as usize;
        dimensions.by_input.insert(item.name().to_string(), size);
    }
    dimensions
}

#[cfg(test)]
mod tests {
    use weft_simulator::Load;

    use super::*;

    fn read(text: &str) -> Result<Workload, Problems> {
        Workload::from_toml(text, &mut |_| Trace::from_csv("1\n2\n").ok())
    }

    #[test]
    fn models_are_read_with_what_is_asked_of_them() {
        let text = "
seconds = 30
seed = 7
profiles = 'cpu.toml'
[models.mobilenet_v2]
rate = 30
slo_ms = 50
timeout_ms = 100
weight = 2
[models.minilm]
trace = 'day.csv'
dimension = 64
dimensions.input_ids = 16
[models.resnet50]
clients = 4
";
        let workload = read(text).unwrap();
        assert_eq!((workload.length, workload.seed), (Some(Span::from_s(30.0)), Some(7)));
        let of = |name: &str| workload.models.iter().find(|model| model.name == name).unwrap();
        assert_eq!(of("mobilenet_v2").load, Load::Poisson { rate_per_s: 30.0 });
        assert_eq!(of("mobilenet_v2").slo, Some(Span::from_us(50_000.0)));
        assert_eq!(of("mobilenet_v2").timeout, Some(Span::from_us(100_000.0)));
        assert_eq!(of("resnet50").load, Load::ClosedLoop { clients: 4, think: Span::ZERO });
        assert_eq!(of("minilm").dimensions.default, 64);
        assert_eq!(of("minilm").dimensions.by_input["input_ids"], 16);
        assert!(matches!(of("minilm").load, Load::Trace { .. }));
    }

    #[test]
    fn all_that_is_wrong_is_said_with_its_line() {
        let text = "second = 1\n[models.a]\nslo_ms = 0\n[models.b]\nrate = 1\nslo_factor = 5\n";
        let problems = read(text).unwrap_err();
        let lines: Vec<usize> = problems.as_slice().iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [1, 2, 3, 6], "{problems}");
        assert!(read("[models]\n").is_err());
        assert!(read("").is_err());
    }
}
