//! `[tenants.NAME]`: who may infer, with which keys, how much.

use std::collections::BTreeSet;

use weft_scheduler::document::{Problems, Section};

use super::Mention;
use super::quantity::{count, given, positive};
use crate::keys::KeyHash;

/// The most keys of one tenant: enough to change them one after another.
const MAX_KEYS: usize = 64;

/// Who may infer.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// What its keys hash to; at least one.
    pub key_hashes: Vec<KeyHash>,
    /// Its share under overload, in relation to the other tenants'.
    pub weight: f64,
    /// The most requests per second, in the long run.
    pub rate_per_s: Option<f64>,
    /// How many requests may come at once before the rate counts.
    pub burst: Option<u32>,
    /// The most requests in flight.
    pub concurrency: Option<u32>,
    /// Models of other tenants that it may use.
    pub models: BTreeSet<String>,
}

pub(super) fn read(
    mut section: Section<'_>,
    mentions: &mut Vec<Mention>,
    problems: &mut Problems,
) -> Tenant {
    let line = section.line();
    let s = &mut section;
    let tenant = Tenant {
        key_hashes: read_key_hashes(s, problems),
        weight: given(s, "weight", problems, positive).unwrap_or(1.0),
        rate_per_s: given(s, "rate_per_s", problems, positive),
        burst: given(s, "burst", problems, count),
        concurrency: given(s, "concurrency", problems, count),
        models: read_models(s, mentions, problems),
    };
    if tenant.key_hashes.is_empty() {
        problems.note(line, "a tenant needs 'key_hashes'; 'weft key' makes a key and its hash");
    }
    if tenant.burst.is_some() && tenant.rate_per_s.is_none() {
        problems.note(line, "'burst' of no limit; give 'rate_per_s' too");
    }
    section.close(problems);
    tenant
}

pub(super) fn read_key_hashes(section: &mut Section<'_>, problems: &mut Problems) -> Vec<KeyHash> {
    let mut hashes: Vec<KeyHash> = Vec::new();
    let Some(item) = section.optional("key_hashes") else { return hashes };
    let list = item.list(problems).unwrap_or_default();
    if list.len() > MAX_KEYS {
        problems.note(item.line(), format!("'key_hashes' holds at most {MAX_KEYS}"));
    }
    for item in list.iter().take(MAX_KEYS) {
        match item.text(problems).map(str::parse) {
            Some(Ok(hash)) => hashes.push(hash),
            Some(Err(error)) => problems.note(item.line(), format!("'key_hashes': {error}")),
            None => {}
        }
    }
    hashes
}

fn read_models(
    section: &mut Section<'_>,
    mentions: &mut Vec<Mention>,
    problems: &mut Problems,
) -> BTreeSet<String> {
    let Some(list) = section.optional("models").and_then(|item| item.list(problems)) else {
        return BTreeSet::new();
    };
    let mut models = BTreeSet::new();
    for item in list {
        if let Some(name) = item.text(problems) {
            mentions.push(Mention { model: name.to_string(), line: item.line() });
            models.insert(name.to_string());
        }
    }
    models
}
