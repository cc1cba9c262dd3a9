//! Results for people.

use weft_load::{DELAY_PERCENTILE, ModelOutcome, Outcome, Reasons};
use weft_scheduler::Span;

use super::Task;
use crate::table::Table;

/// The percentiles that are shown, and their names.
pub(super) const PERCENTILES: [(f64, &str); 5] =
    [(0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9")];

/// The whole report.
pub(super) fn report(task: &Task, outcome: &Outcome) -> String {
    let mut parts =
        vec![task.title(outcome), requests(outcome).render(), latencies(outcome).render()];
    parts.extend(reasons(outcome));
    parts.push(generator(task, outcome));
    parts.extend(warnings(outcome));
    parts.join("\n\n")
}

/// Every model with its attainment, and all together where there are several.
fn rows(outcome: &Outcome) -> Vec<(ModelOutcome, Option<f64>)> {
    let mut rows: Vec<(ModelOutcome, Option<f64>)> =
        outcome.models.iter().map(|model| (model.clone(), model.attainment())).collect();
    if rows.len() > 1 {
        let total = ModelOutcome { name: "total".into(), ..outcome.total() };
        rows.push((total, outcome.attainment()));
    }
    rows
}

fn requests(outcome: &Outcome) -> Table {
    let header =
        ["model", "due", "due/s", "answered", "answered/s", "refused", "failed", "dropped"];
    let mut table = Table::new(header.into_iter().chain(["slo ms", "in time %"]));
    for (row, attainment) in rows(outcome) {
        table.row([
            row.name.clone(),
            row.due.to_string(),
            format!("{:.1}", outcome.per_s(row.due)),
            row.answered.to_string(),
            format!("{:.1}", outcome.per_s(row.answered)),
            row.refused.count().to_string(),
            row.failed.count().to_string(),
            row.dropped.to_string(),
            row.slo.map_or(String::new(), ms),
            attainment.map_or(String::new(), |share| format!("{:.2}", share * 100.0)),
        ]);
    }
    table
}

fn latencies(outcome: &Outcome) -> Table {
    let percentiles = PERCENTILES.map(|(_, name)| name);
    let header = ["latency, ms", "mean"].into_iter().chain(percentiles).chain(["max"]);
    let mut table = Table::new(header);
    for (row, _) in rows(outcome) {
        let latencies = &row.latencies;
        let shown = PERCENTILES.map(|(share, _)| latencies.quantile(share));
        let shown = [latencies.mean()].into_iter().chain(shown).chain([latencies.quantile(1.0)]);
        let has_any = latencies.count() > 0;
        let shown = shown.map(|latency| if has_any { ms(latency) } else { String::new() });
        table.row([row.name.clone()].into_iter().chain(shown));
    }
    table
}

/// Milliseconds, with as many digits as the histogram is good for.
pub(super) fn ms(span: Span) -> String {
    let ms = span.us() * 1e-3;
    match ms {
        0.0..10.0 => format!("{ms:.3}"),
        10.0..100.0 => format!("{ms:.2}"),
        _ => format!("{ms:.1}"),
    }
}

/// Why requests came to nothing.
fn reasons(outcome: &Outcome) -> Option<String> {
    let lines = |model: &ModelOutcome, what: &str, reasons: &Reasons| -> Vec<String> {
        let line = |(name, reason): (&str, &weft_load::Reason)| {
            let said = match reason.example.is_empty() {
                true => String::new(),
                false => format!(", such as: {}", reason.example),
            };
            format!("{} {what}: {} x {name}{said}", model.name, reason.count)
        };
        reasons.iter().map(line).collect()
    };
    let all = outcome.models.iter().flat_map(|model| {
        let refused = lines(model, "refused", &model.refused);
        refused.into_iter().chain(lines(model, "failed", &model.failed))
    });
    Some(all.collect::<Vec<String>>().join("\n")).filter(|text| !text.is_empty())
}

/// What the generator added.
fn generator(task: &Task, outcome: &Outcome) -> String {
    let total = outcome.total();
    let delays = &total.send_delays;
    let mut text = format!(
        "sent {} (p50), {} (p99), {} (max) after they were due; the generator took {:.0} % of a core{}",
        delays.quantile(0.5),
        delays.quantile(DELAY_PERCENTILE),
        delays.quantile(1.0),
        outcome.generator_load * 100.0,
        match task.session.threads {
            1 => String::new(),
            threads => format!(" on {threads} threads"),
        }
    );
    if total.waited > 0 {
        text += &format!(
            "\n{} requests found all {} connections busy; they waited {} (p99), which is part of their latency",
            total.waited,
            task.session.connections,
            total.connection_waits.quantile(DELAY_PERCENTILE)
        );
    }
    text
}

/// What makes the numbers not those of the server.
pub(super) fn warnings(outcome: &Outcome) -> Option<String> {
    let total = outcome.total();
    let mut warnings = Vec::new();
    if total.fell_behind() {
        warnings.push(format!(
            "WARNING: the generator fell behind by {} at p99; the numbers are the client's, not the server's",
            total.send_delays.quantile(DELAY_PERCENTILE)
        ));
    }
    if total.dropped > 0 {
        warnings.push(format!(
            "WARNING: {} requests were never sent, as too many waited for a connection; they are missing among the \
             latencies, and count as not in time",
            total.dropped
        ));
    }
    Some(warnings.join("\n")).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use weft_load::{Histogram, ModelOutcome};

    use super::*;

    fn sent_after(us: &[f64]) -> Outcome {
        let mut send_delays = Histogram::default();
        us.iter().for_each(|&us| send_delays.add(Span::from_us(us)));
        let model = ModelOutcome { send_delays, ..ModelOutcome::default() };
        Outcome { models: vec![model], ..Outcome::default() }
    }

    #[test]
    fn a_generator_that_falls_behind_says_so() {
        assert_eq!(warnings(&sent_after(&[20.0, 900.0])), None);
        let warning = warnings(&sent_after(&[20.0, 3500.0])).unwrap();
        assert!(warning.contains("fell behind by 3.50 ms"), "{warning}");
    }

    #[test]
    fn latencies_have_as_many_digits_as_they_are_good_for() {
        for (us, text) in
            [(0.0, "0.000"), (230.4, "0.230"), (12_345.6, "12.35"), (143_210.0, "143.2")]
        {
            assert_eq!(ms(Span::from_us(us)), text);
        }
    }
}
