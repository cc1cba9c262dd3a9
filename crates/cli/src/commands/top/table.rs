//! Models as a table.

use ratatui::layout::Constraint;
use ratatui::style::{Style, Stylize};
use ratatui::widgets::{Cell, Row, Table};
use weft_server::{ModelDocument, StatusDocument};

/// What stands above each column, and how wide it is.
const COLUMNS: [(&str, u16); 13] = [
    ("MODEL", 22),
    ("STATE", 8),
    ("OBJECTIVE", 15),
    ("HELD", 7),
    ("REQ/S", 7),
    ("REF/S", 6),
    ("P50 MS", 7),
    ("P99 MS", 7),
    ("QUEUE", 5),
    ("BATCH", 6),
    ("GROUP", 8),
    ("UNITS", 5),
    ("ASKED", 5),
];

/// Lines that the table takes.
pub(super) fn height(status: &StatusDocument) -> usize {
    status.models.len() + 1
}

pub(super) fn models(status: &StatusDocument) -> Table<'static> {
    let title = Row::new(COLUMNS.map(|(name, _)| Cell::from(name))).bold();
    let rows: Vec<Row<'static>> = status.models.iter().map(row).collect();
    let mut widths = COLUMNS.map(|(_, width)| Constraint::Length(width));
    // Where there is no room for all, names are what a reader needs most.
    widths[0] = Constraint::Min(COLUMNS[0].1);
    Table::new(rows, widths).header(title)
}

/// The group's number, and how many entries its launches have that the model is in.
fn group(model: &ModelDocument) -> String {
    let Some(group) = model.group else { return "-".into() };
    match group.launch_rows {
        _ if group.is_evicted => format!("{} apart", group.id),
        Some(rows) => format!("{} x{rows:.1}", group.id),
        None => group.id.to_string(),
    }
}

fn row(model: &ModelDocument) -> Row<'static> {
    let number = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.1}"));
    let objective = model.objective.map_or("-".into(), |objective| {
        format!(
            "{} % in {} ms",
            rounded(objective.percentile * 100.0),
            rounded(objective.latency_ms)
        )
    });
    let held = model.attainment.map_or("-".into(), |share| format!("{:.1} %", share * 100.0));
    let is_missed = model
        .objective
        .zip(model.attainment)
        .is_some_and(|(objective, attainment)| attainment < objective.percentile);
    let cells = [
        Cell::from(model.name.clone()),
        Cell::from(model.state.clone()).style(match model.state.as_str() {
            "ready" => Style::new().green(),
            "failed" => Style::new().red(),
            _ => Style::new().dark_gray(),
        }),
        Cell::from(objective),
        Cell::from(held).style(if is_missed { Style::new().red().bold() } else { Style::new() }),
        Cell::from(number(Some(model.requests_per_s))),
        Cell::from(number(Some(model.refused_per_s))),
        Cell::from(number(model.latency.map(|latency| latency.p50_ms))),
        Cell::from(number(model.latency.map(|latency| latency.p99_ms))),
        Cell::from(model.queue_rows.to_string()),
        Cell::from(number(model.batch_rows)),
        Cell::from(group(model)),
        Cell::from(model.units_held.to_string()),
        Cell::from(format!("{:.2}", model.units_asked)),
    ];
    Row::new(cells)
}

/// Without decimals that say nothing.
fn rounded(value: f64) -> String {
    format!("{}", (value * 100.0).round() / 100.0)
}
