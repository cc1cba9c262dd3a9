//! The grid as text: bands in colours where the terminal has them, in shades of grey elsewhere.

use super::grid::{Cell, Grid, Ground};
use crate::palette;

const RESET: &str = "\x1b[0m";

/// What bands on each other are filled with in turns, where there are no colours.
const SHADES: [char; 2] = ['░', '▒'];

pub(super) fn painted(grid: &Grid, has_colours: bool) -> String {
    let row = if has_colours { coloured } else { shaded };
    let lines: Vec<String> = grid.rows.iter().map(|cells| row(cells)).collect();
    lines.join("\n")
}

fn shaded(cells: &[Cell]) -> String {
    let mut text = String::new();
    for (index, cell) in cells.iter().enumerate() {
        let beside = |at: Option<usize>| at.and_then(|at| cells.get(at)).map(|cell| cell.what);
        // A space between two words belongs to the label.
        let is_label = |what: Option<char>| what.is_some_and(|what| !" │".contains(what));
        let is_inside = is_label(beside(index.checked_sub(1))) && is_label(beside(Some(index + 1)));
        text.push(match cell.on {
            Ground::Band { place, .. } if cell.what == ' ' && !is_inside => {
                SHADES[place % SHADES.len()]
            }
            _ => cell.what,
        });
    }
    text.trim_end().to_string()
}

fn coloured(cells: &[Cell]) -> String {
    let mut text = String::new();
    let mut last = Ground::Bare;
    for cell in cells {
        if cell.on != last {
            text.push_str(RESET);
            if let Ground::Band { colour, .. } = cell.on {
                let colour = palette::colour(colour);
                let ink = if colour.is_dark { 231 } else { 16 };
                text.push_str(&format!("\x1b[48;5;{};38;5;{ink}m", colour.terminal));
            }
            last = cell.on;
        }
        text.push(cell.what);
    }
    if last != Ground::Bare {
        text.push_str(RESET);
    }
    text.trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str, on: Ground) -> Vec<Cell> {
        text.chars().map(|what| Cell { what, on }).collect()
    }

    #[test]
    fn bands_are_filled_around_their_labels() {
        let mut cells = row("│", Ground::Bare);
        cells.extend(row(" net b8  ", Ground::Band { colour: 0, place: 1 }));
        cells.extend(row("│  ", Ground::Bare));
        let grid = Grid { rows: vec![cells] };
        assert_eq!(painted(&grid, false), "│▒net b8▒▒│");
        assert_eq!(painted(&grid, true), "│\x1b[0m\x1b[48;5;25;38;5;231m net b8  \x1b[0m│");
    }
}
