//! One model of a workload file, and its copies.

use std::sync::Arc;

use weft_scheduler::Profile;
use weft_scheduler::document::{Item, Problems, Section};

use super::{Named, count, load, number, objective, profiles};
use crate::load::Load;
use crate::world::SimulatedModel;

/// The most copies of one model.
const MAX_COPIES: u32 = 10_000;

/// A model and its copies.
pub(super) fn read(
    item: &Item<'_>,
    mut section: Section<'_>,
    named: &mut Named<'_>,
    problems: &mut Problems,
) -> Option<Vec<SimulatedModel>> {
    let names = match section.optional("profile") {
        Some(named) if named.is_list() => named.list(problems),
        Some(named) => Some(vec![named]),
        None => None,
    };
    let largest = section.optional("max_batch").map(|item| item.count(problems));
    let load = load::read_load(item.name(), &mut section, &mut named.traces, problems);
    let set = named.set.as_ref();
    let profiles = set.and_then(|set| profiles::read(item, names, set, problems));
    let slos = objective::read(&mut section, item, profiles.as_deref(), problems);
    let weight = number(&mut section, "weight", 1.0, problems);
    let priority = section.optional("priority").map_or(Some(0), |item| {
        let priority = item.not_negative(problems)?;
        let fits = priority <= f64::from(u8::MAX) && priority.fract() == 0.0;
        if !fits {
            problems.note(item.line(), "'priority' is a whole number up to 255");
        }
        fits.then_some(priority as u8)
    });
    let copies = count(&mut section, "copies", MAX_COPIES, problems);
    let zipf_item = section.optional("zipf");
    let zipf = zipf_item.map(|item| item.positive(problems));
    if let Some(item) = zipf_item {
        match load {
            _ if copies == Some(1) => {
                problems.note(item.line(), "'zipf' divides the rate over 'copies'; give these too");
            }
            Some(Load::ClosedLoop { .. }) => {
                problems.note(
                    item.line(),
                    "'zipf' and 'clients' contradict each other; give one of them",
                );
            }
            _ => {}
        }
    }
    section.close(problems);
    let shares = shares(copies?, zipf);
    let (load, slos, weight, priority) = (load?, slos?, weight?, priority?);
    let largest = largest.map_or(Some(u32::MAX), |largest| largest)?;
    let profiles: Vec<Arc<Profile>> =
        profiles?.iter().map(|measured| Arc::new(measured.profile.up_to_batch(largest))).collect();
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
        group: None,
        late: None,
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
