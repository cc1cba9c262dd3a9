//! What is promised for one model of a workload file.

use weft_scheduler::Span;
use weft_scheduler::document::{Item, Problems, Section};
use weft_scheduler::plan::Slo;

use super::profiles::Measured;

/// What is promised with each of the profiles, if anything: a latency, or a multiple of that of one item alone.
pub(super) fn read(
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
