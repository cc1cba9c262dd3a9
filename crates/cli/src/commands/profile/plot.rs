//! Profiles as a drawing: latency over units, both logarithmic, a line per model and batch, knees marked.

use weft_scheduler::{Profile, ProfileSet};

use crate::palette;
use crate::svg::{Anchor, Axis, Drawing, Scale, Stroke};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 230.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 60.0;
const LEGEND_LINE: f64 = 18.0;
const KNEE_RADIUS: f64 = 5.0;

/// The smallest and the largest.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(low, high), value| (low.min(value), high.max(value)))
}

/// The drawing as an SVG file.
pub(super) fn svg(set: &ProfileSet, threshold: f64) -> String {
    let series: Vec<Series<'_>> = series(set);
    let all_units = series.iter().flat_map(|line| line.profile.units());
    let units = ends(all_units.clone().map(|&units| f64::from(units)));
    let (fastest, slowest) = ends(series.iter().flat_map(|line| line.points()).map(|(_, ms)| ms));
    let scale = Scale::Logarithmic;
    let x = Axis { scale, values: units, points: (LEFT, WIDTH - RIGHT) };
    let y = Axis { scale, values: (fastest / 1.2, slowest * 1.2), points: (HEIGHT - BOTTOM, TOP) };
    let mut marks: Vec<u32> = all_units.copied().collect();
    marks.sort_unstable();
    marks.dedup();

    let mut drawing = Drawing::default();
    drawing.text(
        Anchor::Start,
        (LEFT, 28.0),
        &format!("{}: latency alone, circles are knees", set.device.name),
    );
    for mark in marks {
        let place = x.at(f64::from(mark));
        drawing.line(Stroke::GRID, (place, TOP), (place, HEIGHT - BOTTOM));
        drawing.text(Anchor::Middle, (place, HEIGHT - BOTTOM + 20.0), &mark.to_string());
    }
    for mark in y.marks() {
        drawing.line(Stroke::GRID, (LEFT, y.at(mark)), (WIDTH - RIGHT, y.at(mark)));
        drawing.text(Anchor::End, (LEFT - 8.0, y.at(mark) + 4.0), &format!("{mark} ms"));
    }
    let caption = format!("units (a unit is one {})", set.device.unit);
    drawing.text(Anchor::Middle, ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 15.0), &caption);
    for (index, line) in series.iter().enumerate() {
        let places: Vec<(f64, f64)> =
            line.points().map(|(units, ms)| (x.at(units), y.at(ms))).collect();
        drawing.polyline(line.stroke(), &places);
        let knee = line.profile.knee(line.batch, threshold);
        drawing.circle(line.colour, (x.at(f64::from(knee)), y.at(line.ms(knee))), KNEE_RADIUS);
        let height = TOP + LEGEND_LINE * index as f64;
        let left = WIDTH - RIGHT + 20.0;
        drawing.polyline(line.stroke(), &[(left, height), (left + 28.0, height)]);
        drawing.text(
            Anchor::Start,
            (left + 36.0, height + 4.0),
            &format!("{} b{}", line.name, line.batch),
        );
    }
    drawing.finish(WIDTH, HEIGHT.max(TOP + LEGEND_LINE * series.len() as f64))
}

/// One line of the drawing.
struct Series<'a> {
    name: &'a str,
    profile: &'a Profile,
    batch: u32,
    colour: &'static str,
    /// The first batch of a model is drawn solid, the next ones in ever longer dashes.
    dash: usize,
}

impl Series<'_> {
    fn ms(&self, units: u32) -> f64 {
        self.profile.latency(self.batch, units).us() * 1e-3
    }

    fn stroke(&self) -> Stroke {
        Stroke { colour: self.colour, width: 2.0, dash: 3 * self.dash }
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.profile.units().iter().map(|&units| (f64::from(units), self.ms(units)))
    }
}

fn series(set: &ProfileSet) -> Vec<Series<'_>> {
    let models = set.profiles.iter().enumerate();
    let lines = models.flat_map(|(index, (name, profile))| {
        let colour = palette::colour(index).hex;
        let batches = profile.batches().iter().enumerate();
        batches.map(move |(dash, &batch)| Series { name, profile, batch, colour, dash })
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_a_knee_and_names_are_escaped() {
        let svg = svg(&ProfileSet::from_toml(super::super::tests::FILE).unwrap(), 0.1);
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("<polyline").count(), 6, "each with its legend");
        assert!(svg.contains("D &amp; &lt;co&gt;") && svg.contains("b&lt;c b1"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
