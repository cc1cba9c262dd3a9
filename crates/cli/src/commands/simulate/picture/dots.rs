//! Panels with a row for each policy and a dot for each model, or for each device.

use weft_simulator::World;

use super::super::play::{Played, Seen};
use super::super::tables::p99_to_slo;
use super::{LEFT, MIDDLE, ROW, WIDTH, draw_marks, heading};
use crate::palette;
use crate::svg::{Anchor, Axis, Drawing, Scale, Stroke};

const RADIUS: f64 = 3.5;
/// Free space to the right.
const MARGIN: f64 = 40.0;
/// Dots past this ratio stand at the edge.
const MOST_RATIO: f64 = 3.0;

/// A dot for each model in the row of each policy: its 99th percentile in relation to its objective.
pub(super) fn draw_tails(drawing: &mut Drawing, world: &World, all: &[Played], top: f64) {
    let ratios = |played: &Played| -> Vec<(usize, f64)> {
        let models = world.models.iter().zip(&played.outcome.models).enumerate();
        models
            .filter_map(|(at, (model, outcome))| Some((at, p99_to_slo(model, outcome)?)))
            .collect()
    };
    let largest = all.iter().flat_map(ratios).map(|(_, ratio)| ratio).fold(1.0, f64::max);
    let end = (largest * 1.05).clamp(1.2, MOST_RATIO);
    let x = Axis { scale: Scale::Linear, values: (0.0, end), points: (MIDDLE, WIDTH - MARGIN) };
    let bottom = top + ROW * all.len() as f64;
    heading(drawing, (MIDDLE, top - 32.0), "99th percentile in relation to the SLO");
    drawing.text(
        Anchor::Start,
        (MIDDLE, top - 11.0),
        "a dot for each model; right of the line is too late",
    );
    draw_marks(drawing, &x, (top, bottom), |mark| format!("{mark:.1}"));
    drawing.line(Stroke::solid("black", 1.5), (x.at(1.0), top), (x.at(1.0), bottom));
    for (index, played) in all.iter().enumerate() {
        let middle = top + ROW * (index as f64 + 0.5);
        let dots = ratios(played);
        for (place, &(at, ratio)) in dots.iter().enumerate() {
            let title = format!("{}, {}: {ratio:.3}", played.policy.name, world.models[at].name);
            let place = (x.at(ratio.min(end)), middle + aside(place));
            drawing.dot(palette::colour(index).hex, place, RADIUS, &title);
        }
    }
}

/// A dot for each device in the row of each policy: how busy it was.
pub(super) fn draw_devices(drawing: &mut Drawing, world: &World, all: &[Played], top: f64) {
    let x = Axis { scale: Scale::Linear, values: (0.0, 100.0), points: (LEFT, WIDTH - MARGIN) };
    let bottom = top + ROW * all.len() as f64;
    heading(drawing, (LEFT, top - 12.0), "how busy devices are, %; a dot for each");
    draw_marks(drawing, &x, (top, bottom), |mark| format!("{mark}"));
    for (index, played) in all.iter().enumerate() {
        let Seen::Fleet { devices, .. } = &played.seen else { continue };
        let middle = top + ROW * (index as f64 + 0.5);
        drawing.text(Anchor::End, (LEFT - 8.0, middle + 4.0), played.policy.name);
        for (number, device) in devices.iter().enumerate() {
            let busy = played.busy_share(world, device.busy_unit_seconds) * 100.0;
            let title = format!("device {number}: {} models, {busy:.1} % busy", device.models);
            let place = (x.at(busy), middle + aside(number));
            drawing.dot(palette::colour(index).hex, place, RADIUS, &title);
        }
    }
}

/// Dots of one row stand a little apart, so that equal ones are seen.
fn aside(place: usize) -> f64 {
    ((place % 5) as f64 - 2.0) * ROW / 9.0
}
