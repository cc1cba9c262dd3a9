//! Partitions as bars of units.

use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use weft_server::{PartitionDocument, StatusDocument};

use crate::palette;

/// The widest bar; where there are more units, a cell stands for several.
const MAX_CELLS: u32 = 64;

/// A line for each partition, below a title.
pub(super) fn lines(status: &StatusDocument) -> Vec<Line<'static>> {
    let title = Line::from("PARTITIONS".bold());
    let partitions = status.partitions.iter().map(|partition| line(partition, status));
    std::iter::once(title).chain(partitions).collect()
}

fn line(partition: &PartitionDocument, status: &StatusDocument) -> Line<'static> {
    let layer = if partition.is_background { "background" } else { "" };
    let style = match &partition.running {
        Some(running) => colour(&running.model, status),
        None => Style::new().dark_gray(),
    };
    let what = match &partition.running {
        Some(running) => format!(
            "{} x{}, {:.0} of {:.0} ms",
            running.model, running.rows, running.elapsed_ms, running.expected_ms
        ),
        None => "idle".into(),
    };
    Line::from(vec![
        Span::raw(format!("{:>3} {layer:<11}", partition.id)),
        Span::styled(bar(partition, status.units), style),
        Span::raw(format!(" {what:<36} ready: {}", partition.models.join(", "))),
    ])
}

/// Which of all units it has: full where it runs, else half.
fn bar(partition: &PartitionDocument, units: u32) -> String {
    let cells = units.clamp(1, MAX_CELLS);
    let cell = |place: u32| {
        let of_cell = place * units / cells..((place + 1) * units / cells).max(1);
        match partition.units.iter().any(|unit| of_cell.contains(unit)) {
            true if partition.running.is_some() => '█',
            true => '▒',
            false => '·',
        }
    };
    (0..cells).map(cell).collect()
}

/// The colour that a model has throughout.
fn colour(model: &str, status: &StatusDocument) -> Style {
    let place = status.models.iter().position(|known| known.name == model).unwrap_or_default();
    Style::new().fg(Color::Indexed(palette::colour(place).terminal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(units: &[u32]) -> PartitionDocument {
        let (models, running) = (Vec::new(), None);
        PartitionDocument { id: 0, is_background: false, units: units.into(), models, running }
    }

    #[test]
    fn bars_show_which_units_there_are() {
        assert_eq!(bar(&partition(&[1, 2]), 4), "·▒▒·");
        assert_eq!(bar(&partition(&[]), 0), "·");
        let many = bar(&partition(&[0, 255]), 256);
        assert_eq!(many.chars().count(), 64);
        assert!(many.starts_with("▒·") && many.ends_with("·▒"));
    }
}
