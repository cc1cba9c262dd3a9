//! What became of requests: a bar for each policy.

use super::super::play::Played;
use super::{LEFT, MIDDLE, ROW, draw_marks, heading};
use crate::svg::{Anchor, Axis, Drawing, Scale};

/// What a request can come to, each in a colour of its own.
const FATES: [(&str, &str); 4] =
    [("in time", "#0072b2"), ("late", "#e69f00"), ("shed", "#d55e00"), ("refused", "#bbbbbb")];

pub(super) fn draw(drawing: &mut Drawing, all: &[Played], top: f64) {
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
