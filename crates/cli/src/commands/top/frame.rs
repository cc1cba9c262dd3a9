//! One frame: what the server does as a whole, its partitions, its models.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Paragraph, Widget};
use weft_server::{ModelDocument, StatusDocument};

use super::{partitions, table};

/// Draws a frame; what has no room is left out.
pub(super) fn draw(
    status: &StatusDocument,
    address: &str,
    trouble: Option<&str>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let head = head(status, address, trouble);
    let partitions = partitions::lines(status);
    let height = |count: usize| Constraint::Length(u16::try_from(count).unwrap_or(u16::MAX));
    let [top, middle, bottom] = Layout::vertical([
        height(head.len() + 1),
        height(partitions.len() + 1),
        Constraint::Min(0),
    ])
    .areas(area);
    Paragraph::new(Text::from(head)).render(top, buffer);
    Paragraph::new(Text::from(partitions)).render(middle, buffer);
    Widget::render(table::models(status), bottom, buffer);
}

/// A frame as plain text, of some width and as high as it needs to be.
pub(super) fn text(status: &StatusDocument, address: &str, width: u16) -> String {
    let height = head(status, address, None).len() + 1 + partitions::lines(status).len() + 1;
    let height = u16::try_from(height + table::height(status)).unwrap_or(u16::MAX);
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    draw(status, address, None, buffer.area, &mut buffer);
    let cells = buffer.content().chunks(usize::from(width).max(1));
    let lines: Vec<String> = cells
        .map(|cells| {
            let line: String = cells.iter().map(|cell| cell.symbol()).collect();
            line.trim_end().to_string()
        })
        .collect();
    lines.join("\n")
}

fn head(status: &StatusDocument, address: &str, trouble: Option<&str>) -> Vec<Line<'static>> {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let mut device = format!("{} units, {} used", status.units, percent(status.utilisation));
    if status.background_utilisation > 0.0 {
        device += &format!(", {} in the background", percent(status.background_utilisation));
    }
    let models = status.memory.map(|memory| {
        let (taken, budget) = (mebibytes(memory.taken_bytes), mebibytes(memory.budget_bytes));
        format!("models take {taken} of {budget}")
    });
    let process =
        status.resident_bytes.map(|bytes| format!("the process takes {}", mebibytes(bytes)));
    let memory: Vec<String> = models.into_iter().chain(process).collect();
    let of = |count: usize, one: &str, many: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    let sum = |per_s: fn(&ModelDocument) -> f64| status.models.iter().map(per_s).sum::<f64>();
    let load = format!(
        "{}, {} in flight; last {:.0} s: {:.1} requests/s, {:.1} refused/s",
        of(status.connections, "connection", "connections"),
        of(status.requests_in_flight, "request", "requests"),
        status.window_s,
        sum(|model| model.requests_per_s),
        sum(|model| model.refused_per_s),
    );
    let mut promises = match status.prediction_error {
        Some(error) => format!(
            "predictions off by {} (median), {} (p95)",
            percent(error.median),
            percent(error.p95)
        ),
        None => "no prediction has come true yet".into(),
    };
    promises += &format!("; partitioned {} times", status.repartitions);
    if status.is_changing {
        promises += "; a new layout is being made";
    }
    let title = format!("weft {} at {address}, up {}", status.version, uptime(status.uptime_s));
    let mut lines = vec![title.bold().into(), device.into()];
    lines.extend((!memory.is_empty()).then(|| memory.join("; ").into()));
    lines.extend([load.into(), promises.into()]);
    if let Some(trouble) = trouble {
        lines.push(Line::styled(trouble.to_string(), Style::new().red().bold()));
    }
    lines
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}

fn uptime(seconds: f64) -> String {
    let seconds = seconds as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status() -> StatusDocument {
        let group = |launch_rows: Option<f64>, is_evicted: bool| json!({ "id": 3, "launch_rows": launch_rows, "is_evicted": is_evicted });
        let model = |name: &str, objective: bool, group: Option<serde_json::Value>| {
            json!({
                "name": name, "state": "ready",
                "objective": objective.then(|| json!({ "percentile": 0.99, "latency_ms": 50.0 })),
                "attainment": objective.then_some(0.995),
                "requests_per_s": 30.04, "refused_per_s": 0.5,
                "latency": { "p50_ms": 7.25, "p99_ms": 43.0 },
                "group": group, "queue_rows": 3, "batch_rows": 2.5, "units_held": 1, "units_asked": 0.31,
                "prediction_error": 0.08,
                "requests": { "ok": 300 }, "refusals": { "too_late": 5 },
            })
        };
        let partition = |id: u32, is_background: bool, units: &[u32], running: bool| {
            json!({
                "id": id, "is_background": is_background, "units": units,
                "models": ["mobilenet"],
                "running": running.then(|| json!({
                    "model": "mobilenet", "rows": 4, "elapsed_ms": 3.0, "expected_ms": 12.5,
                })),
            })
        };
        serde_json::from_value(json!({
            "version": "1.2.3", "uptime_s": 3725.0, "window_s": 10.0, "units": 2,
            "is_changing": false, "repartitions": 2, "utilisation": 0.43,
            "background_utilisation": 0.2,
            "prediction_error": { "median": 0.04, "p95": 0.12 },
            "memory": { "taken_bytes": 104_857_600u64, "budget_bytes": 1_073_741_824u64 },
            "resident_bytes": 83_886_080u64, "connections": 1, "requests_in_flight": 3,
            "partitions": [partition(0, false, &[0], true), partition(1, true, &[0, 1], false)],
            "models": [
                model("mobilenet", true, None),
                model("tenant-a", true, Some(group(Some(12.34), false))),
                model("tenant-b", true, Some(group(Some(12.34), true))),
                model("tenant-c", true, Some(group(None, false))),
                model("resnet", false, None),
            ],
        }))
        .expect("it is a status")
    }

    #[test]
    fn a_frame_says_what_the_server_does() {
        let text = text(&status(), "here:1", 120);
        for told in [
            "weft 1.2.3 at here:1, up 1 h 2 min",
            "2 units, 43 % used, 20 % in the background",
            "models take 100 MiB of 1024 MiB; the process takes 80 MiB",
            "1 connection, 3 requests in flight; last 10 s: 150.2 requests/s, 2.5 refused/s",
            "predictions off by 4 % (median), 12 % (p95); partitioned 2 times",
            "mobilenet x4, 3 of 12 ms",
            "99 % in 50 ms",
            "99.5 %",
            "43.0",
        ] {
            assert!(text.contains(told), "{told} is not in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 120 && line.trim_end() == line));
    }

    #[test]
    fn a_frame_says_who_is_in_a_group_and_how_large_its_launches_are() {
        let text = text(&status(), "here:1", 120);
        let from = |line: &str| line.find("GROUP").expect("the column is there");
        let from = text.lines().find(|line| line.starts_with("MODEL")).map(from).unwrap();
        let told = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line[from..from + 8].trim().to_string()
        };
        let names = ["mobilenet", "tenant-a", "tenant-b", "tenant-c", "resnet"];
        assert_eq!(names.map(told), ["-", "3 x12.3", "3 apart", "3", "-"], "{text}");
        // All columns have their place.
        assert!(text.lines().any(|line| line.starts_with("resnet") && line.ends_with("0.31")));
    }

    #[test]
    fn what_is_said_above_the_table_fits_a_narrow_terminal() {
        let head = head(&status(), "127.0.0.1:8081", None);
        assert!(head.iter().all(|line| line.width() <= 80), "{head:?}");
    }

    #[test]
    fn any_size_can_be_drawn_on() {
        for (width, height) in [(0, 0), (1, 1), (3, 2), (20, 5), (40, 80), (400, 3)] {
            let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
            draw(&status(), "here:1", Some("nobody answers"), buffer.area, &mut buffer);
        }
    }
}
