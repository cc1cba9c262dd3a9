//! Schedules of a mix as drawings: units down, time to the right, for people and for Perfetto.

use serde_json::{Value as Json, json};
use weft_scheduler::Span;
use weft_scheduler::regulate::{MixSchedule, Segment, Timeline};

use crate::palette::colour;
use crate::svg::{Anchor, Drawing, Stroke, TextStyle};

const LEFT: f64 = 60.0;
const WIDTH: f64 = 900.0;
/// How high the units of a schedule are together where there are few, and one of them at least and at most.
const UNITS_HEIGHT: f64 = 96.0;
const UNIT_HEIGHTS: (f64, f64) = (12.0, 24.0);
const TITLE_HEIGHT: f64 = 34.0;
const AXIS_HEIGHT: f64 = 30.0;
const LEGEND_HEIGHT: f64 = 22.0;
/// Names beside each other at most, how wide a letter of them may be, and what else each takes.
const LEGEND_COLUMNS: usize = 4;
const LETTER_WIDTH: f64 = 7.0;
const LEGEND_MARGIN: f64 = 30.0;

/// A schedule, and when its segments run.
pub(super) struct Shown<'a> {
    pub(super) title: String,
    pub(super) schedule: &'a MixSchedule,
    pub(super) timeline: &'a Timeline,
}

/// Schedules one below the other, on one scale of time.
pub(super) fn svg(shown: &[Shown<'_>], names: &[String], unit_count: u32) -> String {
    let longest = shown.iter().map(|one| one.timeline.makespan.us()).fold(1.0, f64::max);
    let x = |us: f64| LEFT + us / longest * WIDTH;
    let unit_height =
        (UNITS_HEIGHT / f64::from(unit_count.max(1))).clamp(UNIT_HEIGHTS.0, UNIT_HEIGHTS.1);
    let height = |schedule: &MixSchedule| {
        let fillers = schedule.segments.iter().filter(|segment| segment.is_filler).count();
        f64::from(unit_count + fillers as u32) * unit_height
    };
    let mut drawing = Drawing::default();
    let columns = legend_columns(names);
    for (model, name) in names.iter().enumerate() {
        let (column, row) = ((model % columns) as f64, (model / columns) as f64);
        let place = (LEFT + column * WIDTH / columns as f64, 8.0 + row * LEGEND_HEIGHT);
        let corner = (place.0 + 12.0, place.1 + 12.0);
        drawing.rectangle(colour(model).hex, place, corner, name);
        drawing.text(Anchor::Start, (place.0 + 18.0, place.1 + 11.0), name);
    }
    let mut top = names.len().div_ceil(columns) as f64 * LEGEND_HEIGHT + 8.0;
    for Shown { title, schedule, timeline } in shown {
        let bold = TextStyle { is_bold: true, ..TextStyle::plain(Anchor::Start) };
        drawing.styled_text(bold, (LEFT, top + TITLE_HEIGHT - 10.0), title);
        let (first, band) = (top + TITLE_HEIGHT, height(schedule));
        for (segment, rows, (begin, end)) in rows(schedule, timeline, unit_count) {
            let about = format!(
                "{}: steps {} to {} on {} units, {:.0} to {:.0} us",
                names[segment.model],
                segment.steps.start,
                segment.steps.end,
                segment.units.len(),
                begin.us(),
                end.us()
            );
            for row in rows {
                let y = first + f64::from(row) * unit_height;
                let corners = ((x(begin.us()), y + 0.5), (x(end.us()), y + unit_height - 0.5));
                drawing.rectangle(colour(segment.model).hex, corners.0, corners.1, &about);
            }
        }
        let bottom = first + band;
        drawing.line(Stroke::solid("#888", 1.0), (LEFT, bottom), (LEFT + WIDTH, bottom));
        let tick = tick_us(longest);
        let mut at = 0.0;
        while at <= longest {
            drawing.line(Stroke::solid("#888", 1.0), (x(at), bottom), (x(at), bottom + 4.0));
            drawing.text(Anchor::Middle, (x(at), bottom + 17.0), &format!("{at:.0} us"));
            at += tick;
        }
        drawing.text(Anchor::End, (LEFT - 6.0, first + band / 2.0), "units");
        top = bottom + AXIS_HEIGHT;
    }
    drawing.finish(LEFT + WIDTH + 50.0, top + 10.0)
}

/// As many names beside each other as do not overlap.
fn legend_columns(names: &[String]) -> usize {
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let each = longest as f64 * LETTER_WIDTH + LEGEND_MARGIN;
    ((WIDTH / each) as usize).clamp(1, LEGEND_COLUMNS)
}

/// Each segment with the rows that it is drawn in: those of its units, or one of its own below them where it fills what others
/// leave.
fn rows<'a>(
    schedule: &'a MixSchedule,
    timeline: &'a Timeline,
    unit_count: u32,
) -> impl Iterator<Item = (&'a Segment, Vec<u32>, &'a (Span, Span))> {
    let mut next = unit_count;
    schedule.segments.iter().zip(&timeline.segments).map(move |(segment, span)| {
        let rows = match segment.is_filler {
            true => {
                next += 1;
                vec![next - 1]
            }
            false => segment.units.iter().collect(),
        };
        (segment, rows, span)
    })
}

/// A round distance of which about eight fit.
fn tick_us(longest: f64) -> f64 {
    let least = longest / 8.0;
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|of| of * power)
        .find(|&tick| tick >= least)
        .unwrap_or(least)
}

/// The same as trace events: each schedule is a process, each unit a track, and so is each model that fills.
pub(super) fn trace(shown: &[Shown<'_>], names: &[String], unit_count: u32) -> Json {
    let mut events = Vec::new();
    for (process, Shown { title, schedule, timeline }) in shown.iter().enumerate() {
        events.push(
            json!({"ph": "M", "pid": process, "name": "process_name", "args": {"name": title}}),
        );
        let fillers = schedule.segments.iter().filter(|segment| segment.is_filler).count() as u32;
        for row in 0..unit_count + fillers {
            let name = match row < unit_count {
                true => format!("unit {row}"),
                false => "fills what others leave".to_string(),
            };
            events.push(json!({
                "ph": "M", "pid": process, "tid": row, "name": "thread_name", "args": {"name": name},
            }));
        }
        for (segment, rows, (begin, end)) in rows(schedule, timeline, unit_count) {
            let Segment { model, steps, units, form, is_filler } = segment;
            for row in rows {
                events.push(json!({
                    "ph": "X", "pid": process, "tid": row, "name": names[*model],
                    "ts": begin.us(), "dur": end.us() - begin.us(),
                    "args": {
                        "first_step": steps.start, "end_step": steps.end, "units": units.len(),
                        "chunks": form.chunks, "fills": is_filler,
                    },
                }));
            }
        }
    }
    json!({"displayTimeUnit": "ns", "traceEvents": events})
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use weft_scheduler::UnitMask;
    use weft_scheduler::regulate::Form;

    use super::*;

    fn segment(model: usize, steps: Range<usize>, units: UnitMask) -> Segment {
        Segment { model, steps, form: Form::WHOLE, units, is_filler: false }
    }

    #[test]
    fn every_segment_is_drawn_on_each_of_its_units() {
        let segments =
            vec![segment(0, 0..3, UnitMask::range(0, 2)), segment(1, 0..4, UnitMask::range(2, 1))];
        let spans = [(0.0, 50.0), (0.0, 80.0)].map(|(a, b)| (Span::from_us(a), Span::from_us(b)));
        let timeline =
            Timeline { segments: spans.to_vec(), makespan: Span::from_us(80.0), idle_unit_us: 0.0 };
        let schedule = MixSchedule { segments };
        let shown = [Shown { title: "regulated".into(), schedule: &schedule, timeline: &timeline }];
        let names = ["a".to_string(), "b <c>".to_string()];
        let drawing = svg(&shown, &names, 3);
        assert_eq!(drawing.matches("a: steps 0 to 3 on 2 units").count(), 2);
        assert_eq!(drawing.matches("b &lt;c&gt;: steps 0 to 4").count(), 1);
        let events = trace(&shown, &names, 3);
        let events = events["traceEvents"].as_array().unwrap();
        let count = |name: &str| events.iter().filter(|event| event["name"] == name).count();
        assert_eq!((count("process_name"), count("thread_name")), (1, 3));
        assert_eq!((count("a"), count("b <c>"), events.len()), (2, 1, 7));
    }

    #[test]
    fn long_names_stand_below_each_other() {
        let names = |length: usize| vec!["m".repeat(length); 5];
        for (length, columns) in [(0, 4), (20, 4), (40, 2), (100, 1), (5000, 1)] {
            assert_eq!(legend_columns(&names(length)), columns, "{length}");
        }
        let drawing = svg(&[], &["a".repeat(100), "b".repeat(100)], 2);
        let place = |letter: &str| {
            let text = drawing.lines().find(|line| line.ends_with(&format!("{letter}</text>")));
            let (_, after) = text?.split_once(r#" y=""#)?;
            after.split_once('"').map(|(y, _)| y.to_string())
        };
        assert!(place("a").is_some() && place("a") != place("b"), "{drawing}");
    }

    #[test]
    fn ticks_are_round_and_few() {
        for longest in [3.0, 80.0, 999.0, 12345.0] {
            let tick = tick_us(longest);
            assert!((4.0..=8.0).contains(&(longest / tick)), "{longest} {tick}");
        }
    }
}
