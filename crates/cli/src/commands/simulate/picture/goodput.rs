//! Answers in time per second over time: a line for each policy, with what was asked for behind.

use super::{LEFT, LEGEND_LINE, Line, RIGHT, WIDTH, draw_marks, heading};
use crate::palette;
use crate::svg::{Anchor, Axis, Drawing, Scale, Stroke};

pub(super) const HEIGHT: f64 = 220.0;

pub(super) fn draw(drawing: &mut Drawing, lines: &[Line<'_>], top: f64) {
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
    let bottom = top + HEIGHT;
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
