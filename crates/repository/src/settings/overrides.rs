//! `[defaults]` and `[models.NAME]`: what a file, or a `config.pbtxt`, says of a model and what it leaves open.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_scheduler::Span;
use weft_scheduler::document::{Item, Problems, Section};
use weft_scheduler::plan::Slo;

use super::Declared;
use super::device::Precision;
use super::model::ModelSettings;
use super::quantity::{count, flag, given, mebibytes, milliseconds, named, positive, seconds};
use crate::model_config::ModelConfig;

/// The percentile of an objective that names none.
const DEFAULT_PERCENTILE: f64 = 0.99;
/// How many requests of a model wait at most, where nobody says.
const DEFAULT_MAX_QUEUE: u32 = 1024;

/// What is said of a model; `None` is left to who is asked next.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ModelOverrides {
    objective: Option<Objective>,
    percentile: Option<f64>,
    timeout: Option<Duration>,
    rate_per_s: Option<f64>,
    weight: Option<f64>,
    priority: Option<u8>,
    tenant: Option<String>,
    is_shared: Option<bool>,
    max_batch: Option<u32>,
    max_queue: Option<u32>,
    dimensions: BTreeMap<String, u32>,
    memory_limit_bytes: Option<u64>,
    keep_loaded: Option<bool>,
    idle_timeout: Option<Duration>,
    precision: Option<Precision>,
}

/// What is promised; that it is nothing can be said, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Objective {
    BestEffort,
    Latency(Duration),
}

impl ModelOverrides {
    /// What a `config.pbtxt` says of it. A model without a dimension for the batch runs alone.
    pub(super) fn from_config(config: &ModelConfig) -> Self {
        let queue = config.dynamic_batching.as_ref().map(|batching| &batching.queue);
        Self {
            max_batch: config.max_batch_size.map(|most| most.max(1)),
            max_queue: queue.and_then(|queue| queue.max_queue_size),
            timeout: queue.and_then(|queue| queue.default_timeout),
            ..Self::default()
        }
    }

    /// What this says, and what the other says of what this leaves open.
    pub(super) fn or(self, other: Self) -> Self {
        let mut dimensions = other.dimensions;
        dimensions.extend(self.dimensions);
        Self {
            objective: self.objective.or(other.objective),
            percentile: self.percentile.or(other.percentile),
            timeout: self.timeout.or(other.timeout),
            rate_per_s: self.rate_per_s.or(other.rate_per_s),
            weight: self.weight.or(other.weight),
            priority: self.priority.or(other.priority),
            tenant: self.tenant.or(other.tenant),
            is_shared: self.is_shared.or(other.is_shared),
            max_batch: self.max_batch.or(other.max_batch),
            max_queue: self.max_queue.or(other.max_queue),
            dimensions,
            memory_limit_bytes: self.memory_limit_bytes.or(other.memory_limit_bytes),
            keep_loaded: self.keep_loaded.or(other.keep_loaded),
            idle_timeout: self.idle_timeout.or(other.idle_timeout),
            precision: self.precision.or(other.precision),
        }
    }

    /// Whose a model is, by its own table or else the file's defaults: `config.pbtxt` knows no tenants.
    pub(super) fn tenant_of<'a>(own: Option<&'a Self>, defaults: &'a Self) -> Option<&'a str> {
        own.and_then(|own| own.tenant.as_deref()).or(defaults.tenant.as_deref())
    }

    /// Whether everybody may use a model, by its own table or else the file's defaults.
    pub(super) fn is_for_everybody(own: Option<&Self>, defaults: &Self) -> bool {
        let is_shared = own.and_then(|own| own.is_shared).or(defaults.is_shared);
        is_shared.unwrap_or_else(|| Self::tenant_of(own, defaults).is_none())
    }

    /// With Weft's own defaults for what nobody said.
    pub(super) fn resolved(self) -> ModelSettings {
        let percentile = self.percentile.unwrap_or(DEFAULT_PERCENTILE);
        let slo = match self.objective {
            Some(Objective::Latency(latency)) => {
                Some(Slo { percentile, latency: Span::from_s(latency.as_secs_f64()) })
            }
            Some(Objective::BestEffort) | None => None,
        };
        ModelSettings {
            slo,
            timeout: self.timeout,
            rate_per_s: self.rate_per_s,
            weight: self.weight.unwrap_or(1.0),
            priority: self.priority.unwrap_or(0),
            is_shared: self.is_shared.unwrap_or(self.tenant.is_none()),
            tenant: self.tenant,
            max_batch: self.max_batch,
            max_queue: self.max_queue.unwrap_or(DEFAULT_MAX_QUEUE),
            dimensions: self.dimensions,
            memory_limit_bytes: self.memory_limit_bytes,
            keep_loaded: self.keep_loaded.unwrap_or(false),
            idle_timeout: self.idle_timeout,
            precision: self.precision,
        }
    }
}

pub(super) fn read(
    mut section: Section<'_>,
    tenants: &Declared,
    problems: &mut Problems,
) -> ModelOverrides {
    let s = &mut section;
    let read = ModelOverrides {
        objective: objective(s, problems),
        percentile: given(s, "percentile", problems, percentile),
        timeout: given(s, "timeout_ms", problems, milliseconds),
        rate_per_s: given(s, "rate_per_s", problems, positive),
        weight: given(s, "weight", problems, positive),
        priority: given(s, "priority", problems, priority),
        tenant: given(s, "tenant", problems, |item, problems| tenant(item, tenants, problems)),
        is_shared: given(s, "shared", problems, flag),
        max_batch: given(s, "max_batch", problems, count),
        max_queue: given(s, "max_queue", problems, count),
        dimensions: given(s, "dimensions", problems, dimensions).unwrap_or_default(),
        memory_limit_bytes: given(s, "memory_limit_mib", problems, mebibytes),
        keep_loaded: given(s, "keep_loaded", problems, flag),
        idle_timeout: given(s, "idle_timeout_s", problems, seconds),
        precision: given(s, "precision", problems, named(&Precision::ALL)),
    };
    if read.keep_loaded == Some(true) && read.idle_timeout.is_some() {
        problems.note(section.line(), "'keep_loaded' and 'idle_timeout_s' contradict each other");
    }
    section.close(problems);
    read
}

fn objective(section: &mut Section<'_>, problems: &mut Problems) -> Option<Objective> {
    let latency = given(section, "slo_ms", problems, milliseconds);
    let best_effort = given(section, "best_effort", problems, flag);
    match (latency, best_effort) {
        (Some(_), Some(true)) => {
            problems.note(section.line(), "'slo_ms' and 'best_effort' contradict each other");
            None
        }
        (Some(latency), _) => Some(Objective::Latency(latency)),
        (None, Some(true)) => Some(Objective::BestEffort),
        (None, _) => None,
    }
}

fn percentile(item: &Item<'_>, problems: &mut Problems) -> Option<f64> {
    let share = item.positive(problems)?;
    let is_share = share < 1.0;
    if !is_share {
        problems.note(item.line(), "'percentile' is a share below 1, such as 0.99");
    }
    is_share.then_some(share)
}

fn priority(item: &Item<'_>, problems: &mut Problems) -> Option<u8> {
    let number = item.not_negative(problems)?;
    let fits = number <= f64::from(u8::MAX) && number.fract() == 0.0;
    if !fits {
        problems.note(item.line(), "'priority' is a whole number up to 255");
    }
    fits.then_some(number as u8)
}

fn tenant(item: &Item<'_>, tenants: &Declared, problems: &mut Problems) -> Option<String> {
    let name = item.text(problems)?;
    let is_declared = tenants.contains_key(name);
    if !is_declared {
        problems.note(item.line(), format!("there is no [tenants.{name}]"));
    }
    is_declared.then(|| name.to_string())
}

fn dimensions(item: &Item<'_>, problems: &mut Problems) -> Option<BTreeMap<String, u32>> {
    let entries = item.section(problems)?.entries();
    let lengths = entries.filter_map(|item| Some((item.name().to_string(), item.count(problems)?)));
    Some(lengths.collect())
}
