//! The report as a drawing: what became of requests, tails against objectives, goodput over time, partitions over time.

use std::collections::BTreeMap;

use weft_scheduler::policies::Sharing;
use weft_scheduler::{ModelId, Time};
use weft_simulator::World;

use super::layout::{Layout, Stay, runs};
use super::play::{Played, Seen};
use super::series::Series;
use super::tables::p99_to_slo;
use crate::palette;
use crate::svg::{Anchor, Axis, Drawing, Place, Scale, Stroke, TextStyle};
use crate::workload::Workload;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 170.0;
const TITLE: f64 = 60.0;
/// Between the two panels that have a row for each policy.
const MIDDLE: f64 = 520.0;
const ROW: f64 = 30.0;
const GOODPUT_HEIGHT: f64 = 220.0;
const LAYOUT_HEIGHT: f64 = 260.0;
/// From the bottom of one panel to the top of the next.
const BETWEEN: f64 = 80.0;
const LEGEND_LINE: f64 = 18.0;
/// Dots past this ratio stand at the edge.
const MOST_RATIO: f64 = 3.0;
/// Models past this many are not in the legend, as colours begin again; who points at them is told their names.
const MOST_IN_LEGEND: usize = palette::COUNT;

/// What a request can come to, each in a colour of its own.
const FATES: [(&str, &str); 4] =
    [("in time", "#0072b2"), ("late", "#e69f00"), ("shed", "#d55e00"), ("refused", "#bbbbbb")];

/// The drawing as an SVG file.
pub(super) fn svg(workload: &Workload, all: &[Played]) -> String {
    let world = &workload.world;
    let mut drawing = Drawing::default();
    let style = TextStyle { size: 16.0, is_bold: true, ..TextStyle::plain(Anchor::Start) };
    let title =
        format!("{}, {:.0} s, seed {}", workload.title(), world.length.seconds(), world.seed);
    drawing.styled_text(style, (20.0, 28.0), &title);
    let mut top = TITLE + 30.0;
    draw_fates(&mut drawing, all, top);
    draw_tails(&mut drawing, world, all, top);
    top += ROW * all.len() as f64 + BETWEEN;
    let lines: Vec<Line<'_>> = all.iter().enumerate().filter_map(Line::of).collect();
    if !lines.is_empty() {
        draw_goodput(&mut drawing, &lines, top);
        top += GOODPUT_HEIGHT.max(LEGEND_LINE * (lines.len() + 1) as f64) + BETWEEN;
    }
    let moves = |line: &&Line<'_>| line.played.policy.sharing == Sharing::SpaceAndTime;
    if let Some(line) = lines.iter().rfind(moves).or(lines.last()) {
        draw_layout(&mut drawing, world, line, top);
        top += LAYOUT_HEIGHT + BETWEEN;
    }
    if all.iter().any(|played| matches!(played.seen, Seen::Fleet { .. })) {
        draw_devices(&mut drawing, world, all, top);
        top += ROW * all.len() as f64 + BETWEEN;
    }
    drawing.finish(WIDTH, top - 25.0)
}

fn heading(drawing: &mut Drawing, place: Place, text: &str) {
    let style = TextStyle { size: 13.0, is_bold: true, ..TextStyle::plain(Anchor::Start) };
    drawing.styled_text(style, place, text);
}

/// The vertical lines of an axis, with what they stand for below.
fn draw_marks(
    drawing: &mut Drawing,
    x: &Axis,
    (top, bottom): (f64, f64),
    text: impl Fn(f64) -> String,
) {
    for mark in x.marks() {
        drawing.line(Stroke::GRID, (x.at(mark), top), (x.at(mark), bottom));
        drawing.text(Anchor::Middle, (x.at(mark), bottom + 16.0), &text(mark));
    }
}

/// A bar for each policy: what became of its requests.
fn draw_fates(drawing: &mut Drawing, all: &[Played], top: f64) {
    let x = Axis { scale: Scale::Linear, values: (0.0, 100.0), points: (LEFT, MIDDLE - 90.0) };
    let bottom = top + ROW * all.len() as f64;
    heading(drawing, (LEFT, top - 32.0), "requests, %");
    let mut at = LEFT;
    for (fate, colour) in FATES {
        drawing.rectangle(colour, (at, top - 20.0), (at + 10.0, top - 10.0), fate);
        drawing.text(Anchor::Start, (at + 14.0, top - 11.0), fate);
        at += 28.0 + 7.0 * fate.len() as f64;
    }
    draw_marks(drawing, &x, (top, bottom), |mark| format!("{mark}"));
    for (index, played) in all.iter().enumerate() {
        let total = played.outcome.total();
        let middle = top + ROW * (index as f64 + 0.5);
        drawing.text(Anchor::End, (LEFT - 8.0, middle + 4.0), played.policy.name);
        let mut from = 0.0;
        let counts = [total.in_time, total.late, total.shed, total.refused];
        for (count, (fate, colour)) in counts.into_iter().zip(FATES) {
            let share = count as f64 / total.arrived.max(1) as f64 * 100.0;
            if count > 0 {
                let corners = ((x.at(from), middle - 9.0), (x.at(from + share), middle + 9.0));
                let title = format!("{}: {count} {fate}, {share:.2} %", played.policy.name);
                drawing.rectangle(colour, corners.0, corners.1, &title);
            }
            from += share;
        }
        let value = format!("{:.2} %", played.outcome.attainment() * 100.0);
        drawing.text(Anchor::Start, (x.at(100.0) + 8.0, middle + 4.0), &value);
    }
}

/// A dot for each model in the row of each policy: its 99th percentile in relation to its objective.
fn draw_tails(drawing: &mut Drawing, world: &World, all: &[Played], top: f64) {
    let ratios = |played: &Played| -> Vec<(usize, f64)> {
        let models = world.models.iter().zip(&played.outcome.models).enumerate();
        models
            .filter_map(|(at, (model, outcome))| Some((at, p99_to_slo(model, outcome)?)))
            .collect()
    };
    let largest = all.iter().flat_map(ratios).map(|(_, ratio)| ratio).fold(1.0, f64::max);
    let end = (largest * 1.05).clamp(1.2, MOST_RATIO);
    let x = Axis { scale: Scale::Linear, values: (0.0, end), points: (MIDDLE, WIDTH - 40.0) };
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
            drawing.dot(palette::colour(index).hex, place, 3.5, &title);
        }
    }
}

/// A dot for each device in the row of each policy: how busy it was.
fn draw_devices(drawing: &mut Drawing, world: &World, all: &[Played], top: f64) {
    let x = Axis { scale: Scale::Linear, values: (0.0, 100.0), points: (LEFT, WIDTH - 40.0) };
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
            drawing.dot(palette::colour(index).hex, place, 3.5, &title);
        }
    }
}

/// Dots of one row stand a little apart, so that equal ones are seen.
fn aside(place: usize) -> f64 {
    ((place % 5) as f64 - 2.0) * ROW / 9.0
}

/// What one device of a policy did over time, and the policy's place among all.
struct Line<'a> {
    index: usize,
    played: &'a Played,
    series: &'a Series,
    layout: &'a Layout,
}

impl<'a> Line<'a> {
    fn of((index, played): (usize, &'a Played)) -> Option<Self> {
        match &played.seen {
            Seen::Device { series, layout } => Some(Self { index, played, series, layout }),
            Seen::Fleet { .. } => None,
        }
    }
}

/// A line for each policy: answers in time per second over time, with what was asked for behind.
fn draw_goodput(drawing: &mut Drawing, lines: &[Line<'_>], top: f64) {
    let Some(first) = lines.first() else { return };
    let interval_s = first.series.interval_s().max(1e-9);
    let per_s = |counts: &[u64]| -> Vec<f64> {
        counts.iter().map(|&count| count as f64 / interval_s).collect()
    };
    let asked = per_s(&first.series.arrived);
    let goodputs: Vec<Vec<f64>> = lines.iter().map(|line| per_s(&line.series.in_time)).collect();
    let largest = goodputs.iter().flatten().chain(&asked).copied().fold(1.0, f64::max);
    let seconds = interval_s * asked.len() as f64;
    let x = Axis { scale: Scale::Linear, values: (0.0, seconds), points: (LEFT, WIDTH - RIGHT) };
    let bottom = top + GOODPUT_HEIGHT;
    let y = Axis { scale: Scale::Linear, values: (0.0, largest * 1.05), points: (bottom, top) };
    heading(drawing, (LEFT, top - 12.0), "answers in time per second");
    draw_marks(drawing, &x, (top, bottom), |mark| format!("{mark} s"));
    for mark in y.marks() {
        drawing.line(Stroke::GRID, (LEFT, y.at(mark)), (WIDTH - RIGHT, y.at(mark)));
        drawing.text(Anchor::End, (LEFT - 8.0, y.at(mark) + 4.0), &format!("{mark}"));
    }
    let place = |(at, value): (usize, &f64)| (x.at((at as f64 + 0.5) * interval_s), y.at(*value));
    let mut draw = |index: usize, name: &str, stroke: Stroke, values: &[f64]| {
        drawing.polyline(stroke, &values.iter().enumerate().map(place).collect::<Vec<_>>());
        let (left, height) = (WIDTH - RIGHT + 15.0, top + 8.0 + LEGEND_LINE * index as f64);
        drawing.polyline(stroke, &[(left, height), (left + 22.0, height)]);
        drawing.text(Anchor::Start, (left + 28.0, height + 4.0), name);
    };
    draw(0, "asked for", Stroke { colour: "#999", width: 1.0, dash: 3 }, &asked);
    for (line, values) in lines.iter().zip(&goodputs) {
        let stroke = Stroke::solid(palette::colour(line.index).hex, 1.8);
        draw(line.index + 1, line.played.policy.name, stroke, values);
    }
}

/// Units over time: each partition where and while it had them, divided among its models as its busy time was.
fn draw_layout(drawing: &mut Drawing, world: &World, line: &Line<'_>, top: f64) {
    let bottom = top + LAYOUT_HEIGHT;
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
    let begin = Time::START + world.preparation;
    let s = |at: Time| at.since(begin).seconds().min(world.length.seconds());
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

#[cfg(test)]
mod tests {
    use weft_scheduler::policies::ALL;
    use weft_scheduler::{ProfileSet, ProfiledDevice};
    use weft_simulator::{Scenario, Trace, WorkloadFiles};

    use super::super::play::play;
    use super::*;

    struct Files;

    impl WorkloadFiles for Files {
        fn profiles(&mut self, _: &str) -> Option<ProfileSet> {
            let text = "
[device]
name = 'D & co'
units = 4
unit = 'core'
bandwidth_gb_per_s = 1000
memory_mb = 100
[models.net]
batches = [1, 4]
units = [1, 4]
latency_us = [[1000, 400], [3000, 1100]]
dram_mb = 1
memory_mb = 1
";
            ProfileSet::from_toml(text).ok()
        }

        fn trace(&mut self, _: &str) -> Option<Trace> {
            None
        }
    }

    #[test]
    fn every_policy_and_model_is_drawn() {
        let text = "
profiles = 'small.toml'
seconds = 1
[models.'a<b']
profile = 'net'
rate = 200
slo_factor = 10
copies = 3
[models.background]
profile = 'net'
rate = 5
";
        let world = Scenario::from_toml(text, &mut Files).unwrap().world;
        let all: Vec<Played> =
            ALL.iter().map(|known| play(&world, known, "", None).unwrap()).collect();
        let device: ProfiledDevice = Files.profiles("").unwrap().device;
        let svg = svg(&Workload { name: "w".into(), world, device, devices: 1 }, &all);
        assert_eq!(svg.matches("<circle").count(), 3 * ALL.len(), "models with an objective");
        assert_eq!(svg.matches("in time, ").count(), ALL.len());
        for known in ALL {
            assert!(svg.contains(known.name), "{}", known.name);
        }
        assert!(svg.contains("D &amp; co") && svg.contains("a&lt;b 3"));
        assert!(svg.contains("partition ") && !svg.contains("NaN") && !svg.contains("inf"));
    }
}
