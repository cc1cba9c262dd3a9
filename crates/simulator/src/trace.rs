//! Traces: when requests came, from a CSV text. `docs/simulation.md` is its description.

use std::collections::BTreeMap;
use std::sync::Arc;

use weft_scheduler::document::Problems;
use weft_scheduler::{Span, Time};

/// The most problems of one text that are told one by one.
const MAX_PROBLEMS: usize = 50;
/// Times beyond this are not seconds since the beginning of a run.
const MAX_SECONDS: f64 = 1e9;

/// When requests came.
#[derive(Clone, Debug, PartialEq)]
pub enum Trace {
    /// Of one model, which the text does not name.
    OfOne(Arc<[Time]>),
    /// By the name of the model.
    ByModel(BTreeMap<String, Arc<[Time]>>),
}

impl Trace {
    /// Reads a text with a time in seconds on each line, and the name of the model after a comma or on no line at all.
    /// Empty lines, comments after `#` and one header are passed over. Times may be in any order.
    pub fn from_csv(text: &str) -> Result<Self, Problems> {
        let mut reading = Reading::default();
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default().trim();
            if !content.is_empty() {
                reading.line(index + 1, content);
            }
        }
        reading.end()
    }

    /// The times of a model by its name, in order; `None` where it does not occur.
    pub fn times_of(&self, model: &str) -> Option<Arc<[Time]>> {
        match self {
            Trace::OfOne(times) => Some(times.clone()),
            Trace::ByModel(models) => models.get(model).cloned(),
        }
    }
}

#[derive(Default)]
struct Reading {
    problems: Problems,
    unlisted: usize,
    has_seen_content: bool,
    /// The number of columns of the first line with a time, and where it is.
    columns: Option<(usize, usize)>,
    times: BTreeMap<String, Vec<Time>>,
}

impl Reading {
    fn line(&mut self, number: usize, content: &str) {
        let fields: Vec<&str> = content.split(',').map(str::trim).collect();
        let may_be_header = !std::mem::replace(&mut self.has_seen_content, true);
        let Ok(seconds) = fields[0].parse::<f64>() else {
            if !may_be_header {
                self.note(number, format!("'{}' is not a time in seconds", fields[0]));
            }
            return;
        };
        if !(0.0..=MAX_SECONDS).contains(&seconds) {
            self.note(
                number,
                format!("the time {} is not within 0 and {MAX_SECONDS} s", fields[0]),
            );
            return;
        }
        if fields.len() > 2 {
            self.note(number, "there are more than two columns: time and model".to_string());
            return;
        }
        let (columns, first) = *self.columns.get_or_insert((fields.len(), number));
        if fields.len() != columns {
            self.note(
                number,
                format!("the model is named either on all lines or on none, see line {first}"),
            );
            return;
        }
        let model = fields.get(1).copied().unwrap_or_default();
        if columns == 2 && model.is_empty() {
            self.note(number, "the name of the model is missing".to_string());
            return;
        }
        let at = Time::START + Span::from_s(seconds);
        match self.times.get_mut(model) {
            Some(times) => times.push(at),
            None => {
                self.times.insert(model.to_string(), vec![at]);
            }
        }
    }

    fn note(&mut self, line: usize, what: String) {
        match self.problems.as_slice().len() < MAX_PROBLEMS {
            true => self.problems.note(line, what),
            false => self.unlisted += 1,
        }
    }

    fn end(mut self) -> Result<Trace, Problems> {
        if let Some(last) = self.problems.as_slice().last() {
            let line = last.line;
            if self.unlisted > 0 {
                self.problems.note(line, format!("and so on: {} more lines", self.unlisted));
            }
            return Err(self.problems);
        }
        let mut ordered = self.times.into_iter().map(|(model, mut times)| {
            times.sort_unstable();
            (model, Arc::from(times))
        });
        match self.columns {
            Some((2, _)) => Ok(Trace::ByModel(ordered.collect())),
            Some(_) => {
                Ok(Trace::OfOne(ordered.next().map_or_else(|| Arc::from([]), |(_, times)| times)))
            }
            None => {
                self.problems.note(1, "there is no request in it");
                Err(self.problems)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(times: &[Time]) -> Vec<f64> {
        times.iter().map(|at| at.since(Time::START).seconds()).collect()
    }

    #[test]
    fn times_are_read_by_model_or_for_one() {
        let text = "time, model\n# night\n0.5, b\n\n0.25,a  # first\n2, b\n1e0,b\n";
        let trace = Trace::from_csv(text).unwrap();
        assert_eq!(seconds(&trace.times_of("b").unwrap()), [0.5, 1.0, 2.0]);
        assert_eq!(seconds(&trace.times_of("a").unwrap()), [0.25]);
        assert_eq!(trace.times_of("c"), None);
        let one = Trace::from_csv("3\r\n1\r\n").unwrap();
        assert_eq!(seconds(&one.times_of("whatever").unwrap()), [1.0, 3.0]);
    }

    #[test]
    fn bad_lines_are_all_told() {
        let text = "time,model\n1,a\nsoon,a\n-1,a\n2\n3,a,b\n4,\nnan,a\n5,a\n";
        let problems = Trace::from_csv(text).unwrap_err();
        let lines: Vec<usize> = problems.as_slice().iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [3, 4, 5, 6, 7, 8], "{problems}");
        assert!(Trace::from_csv("time\n\n# nothing\n").is_err());
        assert!(Trace::from_csv("").is_err());
    }

    #[test]
    fn a_text_of_another_kind_does_not_fill_the_screen() {
        let problems = Trace::from_csv(&"word\n".repeat(10_000)).unwrap_err();
        assert_eq!(problems.as_slice().len(), MAX_PROBLEMS + 1);
        assert!(problems.to_string().ends_with("9949 more lines"), "{problems}");
    }
}
