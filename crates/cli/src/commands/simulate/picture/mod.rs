//! The report as a drawing, a panel in each file.

mod dots;
mod goodput;
mod partitions;
mod requests;

use weft_scheduler::policies::Sharing;

use super::layout::Layout;
use super::play::{Played, Seen};
use super::series::Series;
use crate::svg::{Anchor, Axis, Drawing, Place, Stroke, TextStyle};
use crate::workload::Workload;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 170.0;
/// Where panels begin.
const TOP: f64 = 90.0;
/// Between the two panels that have a row for each policy.
const MIDDLE: f64 = 520.0;
/// The height of such a row.
const ROW: f64 = 30.0;
/// From the bottom of one panel to the top of the next.
const BETWEEN: f64 = 80.0;
const LEGEND_LINE: f64 = 18.0;

/// The drawing as an SVG file.
pub(super) fn svg(workload: &Workload, all: &[Played]) -> String {
    let world = &workload.world;
    let mut drawing = Drawing::default();
    let style = TextStyle { size: 16.0, is_bold: true, ..TextStyle::plain(Anchor::Start) };
    let title =
        format!("{}, {:.0} s, seed {}", workload.title(), world.length.seconds(), world.seed);
    drawing.styled_text(style, (20.0, 28.0), &title);
    let mut top = TOP;
    requests::draw(&mut drawing, all, top);
    dots::draw_tails(&mut drawing, world, all, top);
    top += ROW * all.len() as f64 + BETWEEN;
    let lines: Vec<Line<'_>> = all.iter().enumerate().filter_map(Line::of).collect();
    if !lines.is_empty() {
        goodput::draw(&mut drawing, &lines, top);
        top += goodput::HEIGHT.max(LEGEND_LINE * (lines.len() + 1) as f64) + BETWEEN;
    }
    let moves = |line: &&Line<'_>| line.played.policy.sharing == Sharing::SpaceAndTime;
    if let Some(line) = lines.iter().rfind(moves).or(lines.last()) {
        partitions::draw(&mut drawing, world, line, top);
        top += partitions::HEIGHT + BETWEEN;
    }
    if all.iter().any(|played| matches!(played.seen, Seen::Fleet { .. })) {
        dots::draw_devices(&mut drawing, world, all, top);
        top += ROW * all.len() as f64 + BETWEEN;
    }
    drawing.finish(WIDTH, top - 25.0)
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
