//! Tables for people: columns as wide as their content, numbers to the right.

/// Rows under a header.
pub(crate) struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<'a>(header: impl IntoIterator<Item = &'a str>) -> Self {
        Self { header: header.into_iter().map(str::to_string).collect(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as text; a column whose cells are all numbers is aligned to the right.
    pub(crate) fn render(&self) -> String {
        let columns = self.header.len();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.chain([&self.header[column]]).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let is_number = |column: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(column)).peekable();
            cells.peek().is_some()
                && cells
                    .all(|cell| cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit()))
        };
        let numeric: Vec<bool> = (0..columns).map(is_number).collect();
        let line = |cells: &[String]| {
            let padded: Vec<String> = cells
                .iter()
                .enumerate()
                .map(|(column, cell)| match numeric[column] {
                    true => format!("{cell:>width$}", width = widths[column]),
                    false => format!("{cell:<width$}", width = widths[column]),
                })
                .collect();
            padded.join("  ").trim_end().to_string()
        };
        let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
        let mut lines = vec![line(&self.header), rule.join("  ")];
        lines.extend(self.rows.iter().map(|row| line(row)));
        lines.join("\n")
    }
}

/// Bytes for people.
pub(crate) fn bytes(count: usize) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// Large counts for people.
pub(crate) fn count(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..10_000_000 => format!("{:.1} K", number as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} M", number as f64 / 1e6),
        _ => format!("{:.2} G", number as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_their_content_and_numbers_stand_right() {
        let mut table = Table::new(["model", "ms"]);
        table.row(["resnet50".into(), "9.5".into()]);
        table.row(["vgg".into(), "103.0".into()]);
        assert_eq!(
            table.render(),
            "model        ms\n--------  -----\nresnet50    9.5\nvgg       103.0"
        );
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(3 << 20), "3.0 MiB");
        assert_eq!(count(1234), "1234");
        assert_eq!(count(25_557_032), "25.6 M");
    }
}
