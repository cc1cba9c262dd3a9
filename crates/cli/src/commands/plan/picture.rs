//! The mosaic as a drawing, to scale.

use super::label;
use super::mosaic::{Mosaic, Tile};
use crate::palette;
use crate::svg::{Anchor, Axis, Drawing, Scale, Stroke, TextStyle};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 50.0;
const TIME_HEIGHT: f64 = 420.0;
const BOTTOM: f64 = 60.0;
const GAP: f64 = 1.5;
const LINE_HEIGHT: f64 = 15.0;
const TEXT_SIZE: f64 = 12.0;
/// About as wide as a letter is on average.
const LETTER_WIDTH: f64 = 7.4;

/// The drawing as an SVG file.
pub(super) fn svg(mosaic: &Mosaic, title: &str, unit: &str) -> String {
    let mut drawing = Drawing::default();
    let floor = TOP + TIME_HEIGHT;
    let units = f64::from(mosaic.units().max(1));
    let (x, y) = (
        Axis { scale: Scale::Linear, values: (0.0, units), points: (LEFT, WIDTH - RIGHT) },
        Axis { scale: Scale::Linear, values: (0.0, 1.0), points: (floor, TOP) },
    );
    let heading = TextStyle { size: 15.0, is_bold: true, ..TextStyle::plain(Anchor::Start) };
    drawing.styled_text(heading, (LEFT, 28.0), title);
    for quarter in 0..=4 {
        let share = f64::from(quarter) / 4.0;
        drawing.line(Stroke::GRID, (LEFT, y.at(share)), (WIDTH - RIGHT, y.at(share)));
        let text = format!("{} %", 25 * quarter);
        drawing.text(Anchor::End, (LEFT - 8.0, y.at(share) + 4.0), &text);
    }
    let mut first = 0.0;
    for (index, width) in mosaic.widths().enumerate() {
        let (left, right) = (x.at(first), x.at(first + f64::from(width)));
        let middle = (left + right) / 2.0;
        match mosaic.tiles.get(index) {
            Some(tile) => {
                draw_tile(&mut drawing, tile, (left, right), &y);
                let plural = if width == 1 { "" } else { "s" };
                let names = [
                    format!("P{}: {width} unit{plural}", index + 1),
                    format!("P{}", index + 1),
                    (index + 1).to_string(),
                ];
                let name = label::fitting(&names, letters(right - left));
                let name = name.map_or("", String::as_str);
                drawing.text(Anchor::Middle, (middle, floor + 18.0), name);
            }
            None => {
                let style = TextStyle { colour: "#777", ..TextStyle::plain(Anchor::Middle) };
                for (line, word) in ["best", "effort"].into_iter().enumerate() {
                    let height = TOP + TIME_HEIGHT / 2.0 + LINE_HEIGHT * line as f64;
                    drawing.styled_text(style, (middle, height), word);
                }
                let name = format!("{width} free");
                drawing.text(Anchor::Middle, (middle, floor + 18.0), &name);
            }
        }
        first += f64::from(width);
    }
    let frame = Stroke::solid("black", 1.0);
    let corners =
        [(LEFT, TOP), (WIDTH - RIGHT, TOP), (WIDTH - RIGHT, floor), (LEFT, floor), (LEFT, TOP)];
    drawing.polyline(frame, &corners);
    let mut wall = 0.0;
    for width in mosaic.widths() {
        wall += f64::from(width);
        drawing.line(frame, (x.at(wall), TOP), (x.at(wall), floor + 4.0));
    }
    let caption = format!("units (a unit is one {unit}); height is time");
    drawing.text(Anchor::Middle, ((LEFT + WIDTH - RIGHT) / 2.0, floor + 42.0), &caption);
    drawing.finish(WIDTH, floor + BOTTOM)
}

fn draw_tile(drawing: &mut Drawing, tile: &Tile, (left, right): (f64, f64), y: &Axis) {
    let mut base = 0.0;
    for band in &tile.bands {
        let colour = palette::colour(band.colour);
        let (bottom, top) = (y.at(base), y.at(base + band.busy));
        let batch = band.batch.map_or(String::new(), |batch| format!("batch {batch}, "));
        let rate = label::rate(band.rate_per_s);
        let title = format!("{}: {batch}{rate}, {:.1} % of the time", band.name, band.busy * 100.0);
        // A band must not be thinner than the gap takes from it.
        let edge = (GAP / 2.0).min((bottom - top) / 4.0);
        let corners = ((left + GAP, top + edge), (right - GAP, bottom - edge));
        drawing.rectangle(colour.hex, corners.0, corners.1, &title);
        let rows = ((bottom - top) / LINE_HEIGHT) as usize;
        let lines = label::lines(band, letters(right - left - 8.0), rows);
        let ink = if colour.is_dark { "white" } else { "black" };
        let style = TextStyle { colour: ink, size: TEXT_SIZE, ..TextStyle::plain(Anchor::Start) };
        let free = bottom - top - LINE_HEIGHT * lines.len() as f64;
        for (index, line) in lines.iter().enumerate() {
            let height = top + free / 2.0 + LINE_HEIGHT * (index as f64 + 0.78);
            drawing.styled_text(style, (left + 6.0, height), line);
        }
        base += band.busy;
    }
}

fn letters(width: f64) -> usize {
    (width / LETTER_WIDTH).max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::plan::mosaic::Band;

    #[test]
    fn every_band_is_drawn_to_scale_and_named() {
        let band = |name: &str, busy| Band {
            name: name.into(),
            colour: 3,
            batch: Some(4),
            rate_per_s: 70.0,
            busy,
        };
        let tiles = vec![
            Tile { units: 12, bands: vec![band("a<b", 0.5), band("tiny", 0.001)] },
            Tile { units: 3, bands: vec![band("c", 0.25)] },
        ];
        let svg = svg(&Mosaic { tiles, free_units: 1 }, "four & more", "core");
        assert_eq!(svg.matches("<title>").count(), 3);
        assert!(svg.contains("four &amp; more") && svg.contains("a&lt;b: batch 4, 70/s, 50.0 %"));
        assert!(svg.contains(r#"height="208.5""#) && svg.contains(r#"height="103.5""#), "{svg}");
        assert!(svg.contains("P1: 12 units") && svg.contains("1 free"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}
