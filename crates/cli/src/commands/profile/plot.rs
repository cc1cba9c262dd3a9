//! Profiles as a drawing: latency over units, both logarithmic, a line per model and batch, knees marked.

use std::fmt::Write;

use weft_scheduler::{Profile, ProfileSet};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 230.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 60.0;
const LEGEND_LINE: f64 = 18.0;
/// Told apart also by people who see fewer colours; models past the last begin again.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// A logarithmic axis: values between two ends, on points between two others.
struct Axis {
    values: (f64, f64),
    points: (f64, f64),
}

impl Axis {
    fn at(&self, value: f64) -> f64 {
        let (low, high) = (self.values.0.ln(), self.values.1.ln());
        // All values are the same where only one was measured; it stands in the middle.
        let share = if high > low { (value.ln() - low) / (high - low) } else { 0.5 };
        self.points.0 + (self.points.1 - self.points.0) * share
    }

    /// 1, 2 and 5 times the powers of ten between the ends.
    fn marks(&self) -> Vec<f64> {
        let powers = self.values.0.log10().floor() as i32..=self.values.1.log10().ceil() as i32;
        let marks = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
        marks.filter(|mark| (self.values.0..=self.values.1).contains(mark)).collect()
    }
}

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
    let x = Axis { values: units, points: (LEFT, WIDTH - RIGHT) };
    let y = Axis { values: (fastest / 1.2, slowest * 1.2), points: (HEIGHT - BOTTOM, TOP) };
    let mut marks: Vec<u32> = all_units.copied().collect();
    marks.sort_unstable();
    marks.dedup();

    let mut drawing = Drawing::new();
    drawing.text(
        (LEFT, 28.0),
        "start",
        &format!("{}: latency alone, circles are knees", set.device.name),
    );
    for mark in marks {
        let place = x.at(f64::from(mark));
        drawing.line((place, TOP), (place, HEIGHT - BOTTOM));
        drawing.text((place, HEIGHT - BOTTOM + 20.0), "middle", &mark.to_string());
    }
    for mark in y.marks() {
        drawing.line((LEFT, y.at(mark)), (WIDTH - RIGHT, y.at(mark)));
        drawing.text((LEFT - 8.0, y.at(mark) + 4.0), "end", &format!("{mark} ms"));
    }
    let caption = format!("units (a unit is one {})", set.device.unit);
    drawing.text(((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 15.0), "middle", &caption);
    for (index, line) in series.iter().enumerate() {
        let places: Vec<(f64, f64)> =
            line.points().map(|(units, ms)| (x.at(units), y.at(ms))).collect();
        drawing.series(&places, line);
        let knee = line.profile.knee(line.batch, threshold);
        drawing.circle((x.at(f64::from(knee)), y.at(line.ms(knee))), line.colour);
        let height = TOP + LEGEND_LINE * index as f64;
        let left = WIDTH - RIGHT + 20.0;
        drawing.series(&[(left, height), (left + 28.0, height)], line);
        drawing.text(
            (left + 36.0, height + 4.0),
            "start",
            &format!("{} b{}", line.name, line.batch),
        );
    }
    drawing.finish(TOP + LEGEND_LINE * series.len() as f64)
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

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.profile.units().iter().map(|&units| (f64::from(units), self.ms(units)))
    }
}

fn series(set: &ProfileSet) -> Vec<Series<'_>> {
    let models = set.profiles.iter().zip(COLOURS.into_iter().cycle());
    let lines = models.flat_map(|((name, profile), colour)| {
        let batches = profile.batches().iter().enumerate();
        batches.map(move |(dash, &batch)| Series { name, profile, batch, colour, dash })
    });
    lines.collect()
}

/// The elements of an SVG.
struct Drawing(String);

impl Drawing {
    fn new() -> Self {
        Self(String::new())
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{element}").expect("a string takes any text");
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        self.push(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
        ));
    }

    fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.push(format_args!(
            r##"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="#ddd"/>"##
        ));
    }

    fn series(&mut self, places: &[(f64, f64)], series: &Series<'_>) {
        let places: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dash = match series.dash {
            0 => String::new(),
            length => format!(r#" stroke-dasharray="{} 3""#, 3 * length),
        };
        self.push(format_args!(
            r#"<polyline points="{}" fill="none" stroke="{}" stroke-width="2"{dash}/>"#,
            places.join(" "),
            series.colour,
        ));
    }

    fn circle(&mut self, (x, y): (f64, f64), colour: &str) {
        self.push(format_args!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="5" fill="{colour}"/>"#));
    }

    /// The file, high enough for what stands beside the drawing.
    fn finish(self, needed: f64) -> String {
        let height = HEIGHT.max(needed);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}</svg>\n",
            self.0
        )
    }
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

    #[test]
    fn axes_are_logarithmic_with_round_marks() {
        let axis = Axis { values: (1.0, 100.0), points: (0.0, 200.0) };
        assert!((axis.at(10.0) - 100.0).abs() < 1e-9);
        assert_eq!(axis.marks(), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        let single = Axis { values: (3.0, 3.0), points: (0.0, 200.0) };
        assert_eq!(single.at(3.0), 100.0);
    }
}
