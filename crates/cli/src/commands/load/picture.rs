//! The report as a drawing: percentiles of each model, then latency and answers over time.

use weft_load::{Interval, ModelOutcome, Outcome};
use weft_scheduler::Span;

use super::Task;
use super::tables::PERCENTILES;
use crate::palette;
use crate::svg::{Anchor, Axis, Drawing, Place, Scale, Stroke, TextStyle};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 90.0;
/// The height of a model's row.
const ROW: f64 = 34.0;
const OVER_TIME: f64 = 220.0;
/// From the bottom of one panel to the top of the next.
const BETWEEN: f64 = 80.0;
const LEGEND_LINE: f64 = 18.0;
/// Dots of a row, from the median to the slowest.
const SHARES: usize = PERCENTILES.len() + 1;

/// The drawing as an SVG file.
pub(super) fn svg(task: &Task, outcome: &Outcome) -> String {
    let mut drawing = Drawing::default();
    let style = TextStyle { size: 16.0, is_bold: true, ..TextStyle::plain(Anchor::Start) };
    drawing.styled_text(style, (20.0, 28.0), &task.title(outcome));
    let latency = latency_scale(outcome);
    let mut top = TOP;
    draw_percentiles(&mut drawing, outcome, latency, top);
    top += ROW * outcome.models.len() as f64 + BETWEEN;
    draw_latencies(&mut drawing, outcome, latency, top);
    top += OVER_TIME.max(legend_height(outcome)) + BETWEEN;
    draw_answers(&mut drawing, outcome, top);
    top += OVER_TIME.max(legend_height(outcome)) + BETWEEN;
    drawing.finish(WIDTH, top - 30.0)
}

/// The ends of the axes of latencies, in milliseconds: all that is shown lies between them.
fn latency_scale(outcome: &Outcome) -> (f64, f64) {
    let answered = outcome.models.iter().filter(|model| model.latencies.count() > 0);
    let shown = answered.flat_map(|model| {
        let intervals = model.intervals.iter().map(|interval| &interval.latencies);
        let of_intervals = intervals.filter(|latencies| latencies.count() > 0);
        let of_intervals =
            of_intervals.flat_map(|latencies| [latencies.quantile(0.5), latencies.quantile(0.99)]);
        of_intervals.chain(shares(model).map(|(_, latency)| latency)).chain(model.slo)
    });
    let shown: Vec<f64> = shown.map(ms).collect();
    let low = shown.iter().copied().fold(f64::INFINITY, f64::min);
    let high = shown.iter().copied().fold(0.0, f64::max);
    match low <= high {
        true => (low.max(1e-3) * 0.8, high.max(1e-3) * 1.25),
        false => (1.0, 100.0),
    }
}

fn ms(span: Span) -> f64 {
    span.us() * 1e-3
}

/// The dots of a model.
fn shares(model: &ModelOutcome) -> impl Iterator<Item = (&'static str, Span)> {
    let percentiles = PERCENTILES.map(|(share, name)| (name, model.latencies.quantile(share)));
    percentiles.into_iter().chain([("max", model.latencies.quantile(1.0))])
}

fn draw_percentiles(drawing: &mut Drawing, outcome: &Outcome, values: (f64, f64), top: f64) {
    let x = Axis { scale: Scale::Logarithmic, values, points: (LEFT, WIDTH - RIGHT) };
    let bottom = top + ROW * outcome.models.len() as f64;
    heading(drawing, (LEFT, top - 32.0), "latency from the instant a request was due, ms");
    let names: Vec<&str> = PERCENTILES.iter().map(|(_, name)| *name).chain(["max"]).collect();
    let explained =
        format!("dots from left to right: {}; the line across is the SLO", names.join(", "));
    drawing.text(Anchor::Start, (LEFT, top - 12.0), &explained);
    for mark in x.marks() {
        drawing.line(Stroke::GRID, (x.at(mark), top), (x.at(mark), bottom));
        drawing.text(Anchor::Middle, (x.at(mark), bottom + 16.0), &format!("{mark}"));
    }
    for (index, model) in outcome.models.iter().enumerate() {
        let middle = top + ROW * (index as f64 + 0.5);
        let colour = palette::colour(index).hex;
        drawing.text(Anchor::End, (LEFT - 8.0, middle + 4.0), &model.name);
        let value = match model.attainment() {
            Some(share) => format!("{:.2} % in time", share * 100.0),
            None => format!("{:.1} answers/s", outcome.per_s(model.answered)),
        };
        drawing.text(Anchor::Start, (WIDTH - RIGHT + 15.0, middle + 4.0), &value);
        if let Some(slo) = model.slo.filter(|_| model.latencies.count() > 0) {
            let at = x.at(ms(slo));
            let ends = ((at, middle - ROW / 2.0 + 2.0), (at, middle + ROW / 2.0 - 2.0));
            drawing.line(Stroke::solid("black", 2.0), ends.0, ends.1);
        }
        if model.latencies.count() == 0 {
            continue;
        }
        let dots: Vec<(&str, Span)> = shares(model).collect();
        let places: Vec<Place> =
            dots.iter().map(|&(_, latency)| (x.at(ms(latency)), middle)).collect();
        drawing.polyline(Stroke::solid(colour, 1.5), &places);
        for (size, (&(name, latency), &place)) in dots.iter().zip(&places).enumerate() {
            let title = format!("{}, {name}: {latency}", model.name);
            // The rarer, the smaller.
            drawing.dot(colour, place, 2.5 + 0.5 * (SHARES - size) as f64, &title);
        }
    }
}

fn draw_latencies(drawing: &mut Drawing, outcome: &Outcome, values: (f64, f64), top: f64) {
    let (x, bottom) = (time_axis(outcome), top + OVER_TIME);
    let y = Axis { scale: Scale::Logarithmic, values, points: (bottom, top) };
    heading(drawing, (LEFT, top - 32.0), "latency over time, ms");
    let explained = "p99 solid, p50 dashed, by the instant requests were due; thin lines are SLOs";
    drawing.text(Anchor::Start, (LEFT, top - 12.0), explained);
    draw_grid(drawing, &x, &y);
    for (index, model) in outcome.models.iter().enumerate() {
        let colour = palette::colour(index).hex;
        if let Some(slo) = model.slo.filter(|_| model.latencies.count() > 0) {
            let at = y.at(ms(slo));
            drawing.line(Stroke::solid(colour, 0.8), (LEFT, at), (WIDTH - RIGHT, at));
        }
        for (share, dash, width) in [(0.5, 4, 1.2), (0.99, 0, 1.8)] {
            let value = |interval: &Interval| ms(interval.latencies.quantile(share));
            let answered = model.intervals.iter().enumerate();
            let answered = answered.filter(|(_, interval)| interval.latencies.count() > 0);
            let places: Vec<Place> = answered
                .map(|(place, interval)| (x.at(middle_of(outcome, place)), y.at(value(interval))))
                .collect();
            drawing.polyline(Stroke { colour, width, dash }, &places);
        }
        draw_legend(drawing, index, &model.name, top);
    }
}

fn draw_answers(drawing: &mut Drawing, outcome: &Outcome, top: f64) {
    let (x, bottom) = (time_axis(outcome), top + OVER_TIME);
    let per_s = |place: usize, count: u64| {
        let end = (outcome.interval.seconds() * (place as f64 + 1.0)).min(outcome.length.seconds());
        count as f64 / (end - outcome.interval.seconds() * place as f64).max(1e-9)
    };
    let due = |place: usize, interval: &Interval| per_s(place, interval.due);
    let all = outcome.models.iter().flat_map(|model| model.intervals.iter().enumerate());
    let largest = all.map(|(place, interval)| due(place, interval)).fold(1.0, f64::max);
    let y = Axis { scale: Scale::Linear, values: (0.0, largest * 1.05), points: (bottom, top) };
    heading(drawing, (LEFT, top - 32.0), "answers in time per second");
    drawing.text(Anchor::Start, (LEFT, top - 12.0), "solid; what was due dashed");
    draw_grid(drawing, &x, &y);
    for (index, model) in outcome.models.iter().enumerate() {
        let colour = palette::colour(index).hex;
        let places = |value: &dyn Fn(usize, &Interval) -> f64| -> Vec<Place> {
            let intervals = model.intervals.iter().enumerate();
            let place = |(place, interval): (usize, &Interval)| {
                (x.at(middle_of(outcome, place)), y.at(value(place, interval)))
            };
            intervals.map(place).collect()
        };
        drawing.polyline(Stroke { colour, width: 1.2, dash: 4 }, &places(&due));
        let in_time = |place: usize, interval: &Interval| per_s(place, interval.in_time);
        drawing.polyline(Stroke::solid(colour, 1.8), &places(&in_time));
        draw_legend(drawing, index, &model.name, top);
    }
}

fn time_axis(outcome: &Outcome) -> Axis {
    let seconds = outcome.length.seconds().max(1e-3);
    Axis { scale: Scale::Linear, values: (0.0, seconds), points: (LEFT, WIDTH - RIGHT) }
}

/// The middle of an interval, in seconds.
fn middle_of(outcome: &Outcome, place: usize) -> f64 {
    let (interval, length) = (outcome.interval.seconds(), outcome.length.seconds());
    let start = interval * place as f64;
    (start + (start + interval).min(length)) / 2.0
}

fn draw_grid(drawing: &mut Drawing, x: &Axis, y: &Axis) {
    let (bottom, top) = y.points;
    for mark in x.marks() {
        drawing.line(Stroke::GRID, (x.at(mark), top), (x.at(mark), bottom));
        drawing.text(Anchor::Middle, (x.at(mark), bottom + 16.0), &format!("{mark} s"));
    }
    for mark in y.marks() {
        drawing.line(Stroke::GRID, (LEFT, y.at(mark)), (WIDTH - RIGHT, y.at(mark)));
        drawing.text(Anchor::End, (LEFT - 8.0, y.at(mark) + 4.0), &format!("{mark}"));
    }
}

fn legend_height(outcome: &Outcome) -> f64 {
    LEGEND_LINE * outcome.models.len() as f64
}

fn draw_legend(drawing: &mut Drawing, index: usize, name: &str, top: f64) {
    let (left, height) = (WIDTH - RIGHT + 15.0, top + 8.0 + LEGEND_LINE * index as f64);
    let stroke = Stroke::solid(palette::colour(index).hex, 1.8);
    drawing.polyline(stroke, &[(left, height), (left + 22.0, height)]);
    drawing.text(Anchor::Start, (left + 28.0, height + 4.0), name);
}

fn heading(drawing: &mut Drawing, place: Place, text: &str) {
    let style = TextStyle { size: 13.0, is_bold: true, ..TextStyle::plain(Anchor::Start) };
    drawing.styled_text(style, place, text);
}

#[cfg(test)]
mod tests {
    use weft_load::{AnswerCheck, Protocol, RunOptions, SessionOptions, Target};

    use super::*;

    fn model(name: &str, slo: Option<Span>, latencies_ms: &[f64]) -> ModelOutcome {
        let mut model = ModelOutcome { name: name.into(), slo, ..ModelOutcome::default() };
        for (place, &latency) in latencies_ms.iter().enumerate() {
            let mut interval = Interval { due: 1, in_time: 1, ..Interval::default() };
            model.latencies.add(Span::from_us(latency * 1e3));
            interval.latencies.add(Span::from_us(latency * 1e3));
            model.intervals.resize(place, Interval::default());
            model.intervals.push(interval);
            model.due += 1;
            model.answered += 1;
        }
        model
    }

    #[test]
    fn every_model_is_drawn_also_those_without_answers() {
        let task = Task {
            target: Target::parse("host:1", Some(Protocol::Grpc)).unwrap(),
            models: Vec::new(),
            session: SessionOptions {
                connections: 1,
                threads: 1,
                seed: 1,
                check: AnswerCheck::Size,
                shared_memory: false,
            },
            run: RunOptions {
                length: Span::from_s(3.0),
                warm_up: Span::ZERO,
                seed: 1,
                factor: 1.0,
            },
        };
        let slo = Some(Span::from_us(50_000.0));
        let models = vec![
            model("a<b", slo, &[10.0, 20.0, 300.0]),
            model("c", None, &[]),
            model("d", slo, &[]),
        ];
        let interval = Span::from_s(1.0);
        let outcome = Outcome { models, length: task.run.length, interval, ..Outcome::default() };
        let svg = svg(&task, &outcome);
        assert_eq!(svg.matches("<circle").count(), SHARES);
        assert!(svg.contains("a&lt;b") && svg.contains(">c<") && svg.contains("host:1 over gRPC"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let nothing = Outcome { interval, ..Outcome::default() };
        let empty = super::svg(&task, &nothing);
        assert!(!empty.contains("NaN") && !empty.contains("inf"), "{empty}");
    }
}
