//! How requests of one model of a workload file come: which keys are there says what kind of load it is.

use weft_scheduler::Span;
use weft_scheduler::document::{Item, Problems, Section};

use super::traces::Traces;
use crate::load::Load;

/// Each of these keys is of one kind of load; without any of them requests come independently.
const KINDS: [&str; 5] = ["burstiness", "low_rate", "diurnal_low_rate", "trace", "clients"];

/// Further settings, and the kinds that have them.
const SETTINGS: [(&str, &[&str]); 4] = [
    ("period_s", &["low_rate", "diurnal_low_rate"]),
    ("phase_s", &["low_rate", "diurnal_low_rate"]),
    ("high_share", &["low_rate"]),
    ("think_ms", &["clients"]),
];

/// The load of a model of this name, by the keys of its section that `docs/simulation.md` lists; what is wrong with them is
/// noted.
pub fn read_load(
    model: &str,
    section: &mut Section<'_>,
    traces: &mut Traces<'_>,
    problems: &mut Problems,
) -> Option<Load> {
    let rate = section.optional("rate");
    let kinds = KINDS.map(|key| section.optional(key));
    let settings = SETTINGS.map(|(key, _)| section.optional(key));
    let mut given = kinds.iter().flatten();
    let kind = given.next();
    for other in given {
        contradict(kind?, other, problems);
    }
    note_without_effect(kind, &settings, problems);
    let rate = rate_of(section.line(), rate, kind, problems);
    let [period, phase, high_share, think] = settings;
    let period = period.map_or(Some(10.0), |item| item.positive(problems)).map(Span::from_s);
    let phase = phase.map_or(Some(0.0), |item| item.not_negative(problems)).map(Span::from_s);
    let think_ms = think.map_or(Some(0.0), |item| item.not_negative(problems));
    let share = high_share.map_or(Some(0.5), |item| share_of(&item, problems));
    let Some(kind) = kind else { return Some(Load::Poisson { rate_per_s: rate? }) };
    match kind.name() {
        "burstiness" => {
            let burstiness = kind.not_negative(problems);
            Some(Load::Gamma { rate_per_s: rate?, burstiness: burstiness? })
        }
        "trace" => trace_of(model, kind, traces, problems),
        "clients" => {
            let clients = kind.count(problems)?;
            Some(Load::ClosedLoop { clients, think: Span::from_us(think_ms? * 1e3) })
        }
        _ => {
            let low_per_s = kind.not_negative(problems);
            let (high_per_s, low_per_s) = (rate?, low_per_s?);
            if low_per_s > high_per_s {
                problems.note(kind.line(), format!("'{}' is above 'rate'", kind.name()));
            }
            let (period, phase) = (period?, phase?);
            Some(match kind.name() {
                "low_rate" => {
                    Load::SquareWave { high_per_s, low_per_s, period, share: share?, phase }
                }
                _ => Load::Diurnal { low_per_s, high_per_s, period, phase },
            })
        }
    }
}

fn contradict(one: &Item<'_>, other: &Item<'_>, problems: &mut Problems) {
    let (one_name, other_name) = (one.name(), other.name());
    problems.note(
        one.line().max(other.line()),
        format!("'{one_name}' and '{other_name}' contradict each other; give one of them"),
    );
}

fn note_without_effect(
    kind: Option<&Item<'_>>,
    settings: &[Option<Item<'_>>],
    problems: &mut Problems,
) {
    for (item, (_, kinds)) in settings.iter().zip(SETTINGS) {
        let Some(item) = item else { continue };
        if !kind.is_some_and(|kind| kinds.contains(&kind.name())) {
            let wanted: Vec<String> = kinds.iter().map(|kind| format!("'{kind}'")).collect();
            let what = format!("'{}' is nothing without {}", item.name(), wanted.join(" or "));
            problems.note(item.line(), what);
        }
    }
}

/// The rate: there must be one, unless the kind of load says all.
fn rate_of(
    line: usize,
    rate: Option<Item<'_>>,
    kind: Option<&Item<'_>>,
    problems: &mut Problems,
) -> Option<f64> {
    match (rate, kind.filter(|kind| matches!(kind.name(), "trace" | "clients"))) {
        (Some(rate), None) => rate.positive(problems),
        (Some(rate), Some(kind)) => {
            contradict(&rate, kind, problems);
            None
        }
        (None, None) => {
            problems.note(line, "'rate' is missing");
            None
        }
        (None, Some(_)) => None,
    }
}

fn share_of(item: &Item<'_>, problems: &mut Problems) -> Option<f64> {
    let share = item.not_negative(problems)?;
    if share > 1.0 {
        problems.note(item.line(), "'high_share' is a share of the period, at most 1");
    }
    Some(share)
}

fn trace_of(
    model: &str,
    item: &Item<'_>,
    traces: &mut Traces<'_>,
    problems: &mut Problems,
) -> Option<Load> {
    let file = item.text(problems)?;
    let Some(times) = traces.named(file)?.times_of(model) else {
        problems.note(item.line(), format!("there is no request of '{model}' in '{file}'"));
        return None;
    };
    Some(Load::Trace { times, multiplicity: 1.0 })
}
