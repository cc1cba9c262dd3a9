//! The matrix of a tuning grid as a picture.

use crate::svg::{Anchor, Drawing, TextStyle};

/// The side of one field.
const FIELD: f64 = 84.0;
const LEFT: f64 = 110.0;
const TOP: f64 = 70.0;
const MARGIN: f64 = 20.0;

/// What is this much slower than the best of its column is drawn in the darkest colour.
const DARKEST: f64 = 1.5;

/// Relative latencies, by the size tuned for and the size served on.
pub(super) fn svg(sizes: &[usize], relative: &[Vec<f64>], counted_in: &str) -> String {
    let mut drawing = Drawing::default();
    let side = FIELD * sizes.len() as f64;
    let (width, height) = (LEFT + side + MARGIN, TOP + side + 2.0 * MARGIN);
    let title = format!("latency relative to the best of the column, by {counted_in}");
    drawing.styled_text(
        TextStyle { is_bold: true, size: 13.0, ..TextStyle::plain(Anchor::Start) },
        (MARGIN, 24.0),
        &title,
    );
    drawing.text(Anchor::Middle, (LEFT + side / 2.0, 44.0), "served on");
    drawing.text(Anchor::Start, (MARGIN, TOP - 8.0), "tuned for");
    for (place, size) in sizes.iter().enumerate() {
        let middle = FIELD * (place as f64 + 0.5);
        drawing.text(Anchor::Middle, (LEFT + middle, TOP - 8.0), &size.to_string());
        drawing.text(Anchor::End, (LEFT - 10.0, TOP + middle + 4.0), &size.to_string());
    }
    for (row, values) in relative.iter().enumerate() {
        for (column, &value) in values.iter().enumerate() {
            let corner = (LEFT + FIELD * column as f64, TOP + FIELD * row as f64);
            let opposite = (corner.0 + FIELD - 2.0, corner.1 + FIELD - 2.0);
            let about = format!("tuned for {}, served on {}", sizes[row], sizes[column]);
            drawing.rectangle(&colour(value), corner, opposite, &about);
            let is_dark = value > (1.0 + DARKEST) / 2.0;
            let style = TextStyle {
                colour: if is_dark { "white" } else { "black" },
                is_bold: row == column,
                ..TextStyle::plain(Anchor::Middle)
            };
            let middle = (corner.0 + FIELD / 2.0 - 1.0, corner.1 + FIELD / 2.0 + 3.0);
            drawing.styled_text(style, middle, &format!("{value:.3}"));
        }
    }
    drawing.finish(width, height)
}

/// White for the best, and a deeper blue the slower.
fn colour(value: f64) -> String {
    let share = ((value - 1.0) / (DARKEST - 1.0)).clamp(0.0, 1.0);
    let mix = |from: f64, to: f64| (from + (to - from) * share).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(240.0, 0.0), mix(246.0, 68.0), mix(252.0, 128.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_number() {
        let picture = svg(&[8, 32], &[vec![1.0, 1.25], vec![1.75, 1.0]], "SMs");
        for text in ["1.250", "1.750", "tuned for", "served on", ">32<"] {
            assert!(picture.contains(text), "{text}");
        }
        assert_ne!(colour(1.0), colour(1.2));
        assert_eq!(colour(2.0), colour(9.0));
    }
}
