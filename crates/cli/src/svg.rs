//! Drawings as SVG files: the few elements that plots are made of, and axes to place them on.

use std::fmt::Write;

/// A place: to the right, and down.
pub(crate) type Place = (f64, f64);

/// Where a text stands in relation to its place.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// How text looks.
#[derive(Clone, Copy)]
pub(crate) struct TextStyle {
    pub(crate) anchor: Anchor,
    pub(crate) size: f64,
    pub(crate) colour: &'static str,
    pub(crate) is_bold: bool,
}

impl TextStyle {
    pub(crate) const fn plain(anchor: Anchor) -> Self {
        Self { anchor, size: 12.0, colour: "black", is_bold: false }
    }
}

/// How a line looks.
#[derive(Clone, Copy)]
pub(crate) struct Stroke {
    pub(crate) colour: &'static str,
    pub(crate) width: f64,
    /// The length of dashes; zero for a solid line.
    pub(crate) dash: usize,
}

impl Stroke {
    /// Of the lines behind a plot.
    pub(crate) const GRID: Stroke = Stroke { colour: "#ddd", width: 1.0, dash: 0 };

    pub(crate) const fn solid(colour: &'static str, width: f64) -> Self {
        Self { colour, width, dash: 0 }
    }

    fn attributes(self) -> String {
        let dash = match self.dash {
            0 => String::new(),
            length => format!(r#" stroke-dasharray="{length} 3""#),
        };
        format!(r#"stroke="{}" stroke-width="{}"{dash}"#, self.colour, self.width)
    }
}

/// The elements of a drawing.
#[derive(Default)]
pub(crate) struct Drawing(String);

impl Drawing {
    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{element}").expect("a string takes any text");
    }

    pub(crate) fn text(&mut self, anchor: Anchor, place: Place, text: &str) {
        self.styled_text(TextStyle::plain(anchor), place, text);
    }

    pub(crate) fn styled_text(&mut self, style: TextStyle, (x, y): Place, text: &str) {
        let anchor = match style.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if style.is_bold { r#" font-weight="bold""# } else { "" };
        self.push(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{}" fill="{}"{weight}>{}</text>"#,
            style.size,
            style.colour,
            escaped(text)
        ));
    }

    pub(crate) fn line(&mut self, stroke: Stroke, (x1, y1): Place, (x2, y2): Place) {
        self.push(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" {}/>"#,
            stroke.attributes()
        ));
    }

    pub(crate) fn polyline(&mut self, stroke: Stroke, places: &[Place]) {
        let places: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.push(format_args!(
            r#"<polyline points="{}" fill="none" {}/>"#,
            places.join(" "),
            stroke.attributes()
        ));
    }

    pub(crate) fn circle(&mut self, fill: &str, (x, y): Place, radius: f64) {
        self.push(format_args!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{fill}"/>"#));
    }

    /// A circle, with a text that is shown to who points at it.
    pub(crate) fn dot(&mut self, fill: &str, (x, y): Place, radius: f64, title: &str) {
        self.push(format_args!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{fill}"><title>{}</title></circle>"#,
            escaped(title)
        ));
    }

    /// A rectangle between two corners, with a text that is shown to who points at it.
    pub(crate) fn rectangle(
        &mut self,
        fill: &str,
        (left, top): Place,
        (right, bottom): Place,
        title: &str,
    ) {
        let (width, height) = ((right - left).max(0.0), (bottom - top).max(0.0));
        self.push(format_args!(
            r#"<rect x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}" fill="{fill}"><title>{}</title></rect>"#,
            escaped(title)
        ));
    }

    /// The file.
    pub(crate) fn finish(self, width: f64, height: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}</svg>\n",
            self.0
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Logarithmic,
}

/// Values between two ends, on points between two others.
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    pub(crate) values: (f64, f64),
    pub(crate) points: (f64, f64),
}

impl Axis {
    pub(crate) fn at(&self, value: f64) -> f64 {
        let scaled = |value: f64| match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.ln(),
        };
        let (low, high) = (scaled(self.values.0), scaled(self.values.1));
        // Where all values are the same, they stand in the middle.
        let share = if high > low { (scaled(value) - low) / (high - low) } else { 0.5 };
        self.points.0 + (self.points.1 - self.points.0) * share
    }

    /// Round values between the ends: some steps of 1, 2 or 5 times a power of ten, or these themselves.
    pub(crate) fn marks(&self) -> Vec<f64> {
        let (low, high) = self.values;
        match self.scale {
            Scale::Linear => {
                let raw = (high - low).max(f64::MIN_POSITIVE) / 5.0;
                let power = 10f64.powf(raw.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
                let step = step.into_iter().find(|&step| step >= raw * 0.999).unwrap_or(raw);
                let first = (low / step).ceil() as i64;
                let last = (high / step * (1.0 + 1e-9)).floor() as i64;
                (first..=last).map(|count| count as f64 * step).collect()
            }
            Scale::Logarithmic => {
                let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
                let marks =
                    powers.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
                marks.filter(|mark| (low..=high).contains(mark)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_marks() {
        let (scale, points) = (Scale::Logarithmic, (0.0, 200.0));
        let axis = Axis { scale, values: (1.0, 100.0), points };
        assert!((axis.at(10.0) - 100.0).abs() < 1e-9);
        assert_eq!(axis.marks(), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(Axis { scale, values: (3.0, 3.0), points }.at(3.0), 100.0);
        let axis = Axis { scale: Scale::Linear, values: (0.0, 1000.0), points };
        assert_eq!(axis.at(250.0), 50.0);
        assert_eq!(axis.marks(), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        let axis = Axis { scale: Scale::Linear, values: (0.0, 7.0), points };
        assert_eq!(axis.marks(), [0.0, 2.0, 4.0, 6.0]);
    }

    #[test]
    fn texts_are_escaped() {
        let mut drawing = Drawing::default();
        drawing.text(Anchor::Start, (0.0, 0.0), "a < b & c");
        drawing.rectangle("red", (0.0, 0.0), (1.0, -1.0), "<t>");
        let svg = drawing.finish(1.0, 2.0);
        assert!(svg.contains("a &lt; b &amp; c") && svg.contains("&lt;t&gt;"), "{svg}");
        assert!(svg.contains(r#"height="0.0""#), "{svg}");
    }
}
