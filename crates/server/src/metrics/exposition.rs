//! The text format of Prometheus, version 0.0.4.

use std::fmt::Write;

use super::histogram::HistogramCounts;
use super::names::{Family, Kind};

/// How many of what a histogram counts make one of the unit that is told.
pub(crate) const NANOSECONDS: f64 = 1e9;
pub(crate) const ROWS: f64 = 1.0;

/// A label and its value.
pub(crate) type Label<'a> = (&'a str, &'a str);

/// A page of metrics as it is written. All values of one metric come one after another.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
    current: Option<Family>,
}

impl Exposition {
    /// A counter or a gauge.
    pub(crate) fn value(&mut self, family: Family, labels: &[Label<'_>], value: f64) {
        self.begin(family);
        self.sample(family.name, "", labels, None, value);
    }

    /// A histogram, whose values are told in a unit that is so many times larger.
    pub(crate) fn histogram(
        &mut self,
        family: Family,
        labels: &[Label<'_>],
        counts: &HistogramCounts,
        scale: f64,
    ) {
        self.begin(family);
        let mut up_to = 0;
        for (place, count) in counts.counts.iter().enumerate() {
            up_to += count;
            let bound = counts
                .bounds
                .get(place)
                .map_or("+Inf".into(), |&bound| (bound as f64 / scale).to_string());
            let bound = ("le", bound.as_str());
            self.sample(family.name, "_bucket", labels, Some(bound), up_to as f64);
        }
        self.sample(family.name, "_sum", labels, None, counts.sum as f64 / scale);
        self.sample(family.name, "_count", labels, None, up_to as f64);
    }

    /// The page.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn begin(&mut self, family: Family) {
        if self.current.replace(family) == Some(family) {
            return;
        }
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let Family { name, help, .. } = family;
        // Writing to a text cannot fail, here and below.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(
        &mut self,
        name: &str,
        suffix: &str,
        labels: &[Label<'_>],
        last: Option<Label<'_>>,
        value: f64,
    ) {
        let _ = write!(self.text, "{name}{suffix}");
        let mut separator = '{';
        for (label, value) in labels.iter().copied().chain(last) {
            let _ = write!(self.text, "{separator}{label}=\"");
            for character in value.chars() {
                match character {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    plain => self.text.push(plain),
                }
            }
            self.text.push('"');
            separator = ',';
        }
        let end = if separator == ',' { "}" } else { "" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::histogram::Histogram;
    use crate::metrics::names::{BATCH_ROWS, REFUSALS, UNITS};

    #[test]
    fn a_page_reads_as_the_format_wants_it() {
        let mut page = Exposition::default();
        page.value(UNITS, &[], 2.0);
        page.value(REFUSALS, &[("model", "a\"b\\c\nd"), ("reason", "too_late")], 3.0);
        let histogram = Histogram::new(&[1, 2]);
        [1, 2, 2, 5].into_iter().for_each(|rows| histogram.add(rows));
        page.histogram(BATCH_ROWS, &[("model", "m")], &histogram.counts(), ROWS);
        page.histogram(BATCH_ROWS, &[("model", "n")], &histogram.counts(), 10.0);
        let text = page.finish();
        let values: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            values,
            [
                "weft_units 2",
                r#"weft_refusals_total{model="a\"b\\c\nd",reason="too_late"} 3"#,
                r#"weft_batch_rows_bucket{model="m",le="1"} 1"#,
                r#"weft_batch_rows_bucket{model="m",le="2"} 3"#,
                r#"weft_batch_rows_bucket{model="m",le="+Inf"} 4"#,
                r#"weft_batch_rows_sum{model="m"} 10"#,
                r#"weft_batch_rows_count{model="m"} 4"#,
                r#"weft_batch_rows_bucket{model="n",le="0.1"} 1"#,
                r#"weft_batch_rows_bucket{model="n",le="0.2"} 3"#,
                r#"weft_batch_rows_bucket{model="n",le="+Inf"} 4"#,
                r#"weft_batch_rows_sum{model="n"} 1"#,
                r#"weft_batch_rows_count{model="n"} 4"#,
            ]
        );
        assert_eq!(text.matches("# TYPE").count(), 3);
        assert!(text.contains("# TYPE weft_batch_rows histogram\n"));
    }
}
