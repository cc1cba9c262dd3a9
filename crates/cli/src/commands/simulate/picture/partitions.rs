//! Units over time: each partition where and while it had them, divided among its models as its busy time was.

use std::collections::BTreeMap;

use weft_scheduler::{ModelId, Time};
use weft_simulator::World;

use super::super::layout::{Stay, runs};
use super::{LEFT, LEGEND_LINE, Line, RIGHT, WIDTH, draw_marks, heading};
use crate::palette;
use crate::svg::{Anchor, Axis, Drawing, Scale, Stroke};

pub(super) const HEIGHT: f64 = 260.0;
/// Models past this many are not in the legend, as colours begin again; who points at them is told their names.
const MOST_IN_LEGEND: usize = palette::COUNT;

pub(super) fn draw(drawing: &mut Drawing, world: &World, line: &Line<'_>, top: f64) {
    let bottom = top + HEIGHT;
    let (seconds, units) = (world.length.seconds(), f64::from(world.units));
    let x = Axis { scale: Scale::Linear, values: (0.0, seconds), points: (LEFT, WIDTH - RIGHT) };
    let y = Axis { scale: Scale::Linear, values: (0.0, units), points: (top, bottom) };
    let policy = line.played.policy.name;
    let title = format!("partitions of {policy} over time, and what ran in them");
    heading(drawing, (LEFT, top - 12.0), &title);
    draw_marks(drawing, &x, (top, bottom), |mark| format!("{mark} s"));
    let mut colours = BTreeMap::new();
    for stay in &line.layout.stays {
        draw_stay(drawing, world, stay, (&x, &y), &mut colours);
    }
    for mark in y.marks().into_iter().filter(|mark| mark.fract() == 0.0) {
        drawing.text(Anchor::End, (LEFT - 8.0, y.at(mark) + 4.0), &format!("unit {mark}"));
    }
    draw_legend(drawing, world, colours, top);
}

/// The names of models beside their colours.
fn draw_legend(drawing: &mut Drawing, world: &World, colours: BTreeMap<ModelId, usize>, top: f64) {
    let mut names: Vec<(usize, ModelId)> =
        colours.into_iter().map(|(model, colour)| (colour, model)).collect();
    names.sort_unstable();
    let left = WIDTH - RIGHT + 15.0;
    let more = names.len().saturating_sub(MOST_IN_LEGEND);
    names.truncate(MOST_IN_LEGEND);
    let mut height = top;
    for &(colour, model) in &names {
        let fill = palette::colour(colour).hex;
        let name = &world.models[model.index()].name;
        drawing.rectangle(fill, (left, height), (left + 12.0, height + 12.0), name);
        drawing.text(Anchor::Start, (left + 18.0, height + 11.0), name);
        height += LEGEND_LINE;
    }
    if more > 0 {
        drawing.text(Anchor::Start, (left + 18.0, height + 11.0), &format!("and {more} more"));
    }
}

fn draw_stay(
    drawing: &mut Drawing,
    world: &World,
    stay: &Stay,
    (x, y): (&Axis, &Axis),
    colours: &mut BTreeMap<ModelId, usize>,
) {
    // As in the panel above, time begins with the first requests and ends with the last.
    let s = |at: Time| at.since(Time::START).seconds().min(world.length.seconds());
    let (left, right) = (x.at(s(stay.from)), x.at(s(stay.until)));
    let busy_s: f64 = stay.busy.values().map(|span| span.seconds()).sum();
    let length_s = stay.until.since(stay.from).seconds().max(1e-9);
    for (first, end) in runs(stay.units) {
        let (upper, lower) = (y.at(f64::from(first)), y.at(f64::from(end)));
        let what = format!(
            "partition {} from {:.2} s to {:.2} s",
            stay.partition.0,
            s(stay.from),
            s(stay.until)
        );
        drawing.rectangle("#eeeeee", (left, upper), (right, lower), &what);
        let mut from = upper;
        for (model, span) in &stay.busy {
            let next = colours.len();
            let colour = palette::colour(*colours.entry(*model).or_insert(next));
            let until = from + (lower - upper) * span.seconds() / busy_s.max(1e-12);
            let share = span.seconds() / length_s * 100.0;
            let name = &world.models[model.index()].name;
            let title = format!("{what}: {name}, {share:.1} % of the time");
            drawing.rectangle(colour.hex, (left, from), (right, until), &title);
            from = until;
        }
        let frame = [(left, upper), (right, upper), (right, lower), (left, lower), (left, upper)];
        drawing.polyline(Stroke::solid("white", 1.5), &frame);
    }
}
