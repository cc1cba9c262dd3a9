//! The mosaic in characters: where walls, bands and labels stand when tiles are columns and time is rows.

use super::label;
use super::mosaic::{Mosaic, Tile};
use super::proportions::{band_rows, shown, walls};

/// Rows of the whole time; more where a partition has many models, up to a limit.
const LEAST_ROWS: usize = 20;
const MOST_ROWS: usize = 40;

/// Rows between two marks of the axis, and what the number of rows is a multiple of.
const ROWS_OF_A_QUARTER: usize = 4;

/// Columns of the axis.
pub(super) const AXIS_COLUMNS: usize = 6;

/// What a place shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) what: char,
    pub(super) on: Ground,
}

/// What is behind a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    /// Paper: the axis, walls, time in which nothing runs.
    Bare,
    /// A band of this colour, the so-manieth of its tile.
    Band { colour: usize, place: usize },
}

/// The mosaic, row by row from the top, all of the same length.
pub(super) struct Grid {
    pub(super) rows: Vec<Vec<Cell>>,
}

impl Grid {
    pub(super) fn new(mosaic: &Mosaic, width: usize) -> Self {
        let walls = walls(mosaic, width.saturating_sub(AXIS_COLUMNS + 1));
        let most_bands = mosaic.tiles.iter().map(|tile| tile.bands.len()).max().unwrap_or(0);
        let time_rows =
            (most_bands + 2).clamp(LEAST_ROWS, MOST_ROWS).next_multiple_of(ROWS_OF_A_QUARTER);
        let columns = AXIS_COLUMNS + walls.last().map_or(0, |last| last + 1);
        let bare = Cell { what: ' ', on: Ground::Bare };
        let mut grid = Self { rows: vec![vec![bare; columns]; time_rows + 3] };
        grid.draw_axis(time_rows);
        grid.draw_walls(&walls, time_rows);
        for (index, pair) in walls.windows(2).enumerate() {
            let left = AXIS_COLUMNS + pair[0] + 1;
            let columns = pair[1] - pair[0] - 1;
            let space = Space { left, columns, rows: time_rows };
            match mosaic.tiles.get(index) {
                Some(tile) => grid.draw_tile(tile, index, space),
                None => grid.draw_free(mosaic.free_units, space),
            }
        }
        grid
    }

    fn write(&mut self, row: usize, column: usize, text: &str) {
        for (cell, what) in self.rows[row][column..].iter_mut().zip(text.chars()) {
            cell.what = what;
        }
    }

    fn draw_axis(&mut self, time_rows: usize) {
        for quarter in 0..=4 {
            // A mark stands at the upper edge of its row; that of the top and of the bottom on the frame.
            let row = match quarter {
                0 => 0,
                4 => time_rows + 1,
                _ => time_rows * quarter / 4 + 1,
            };
            self.write(row, 0, &format!("{:>3} %", 100 - 25 * quarter));
        }
    }

    fn draw_walls(&mut self, walls: &[usize], time_rows: usize) {
        let Some(&last) = walls.last() else { return };
        let bottom = time_rows + 1;
        for column in 0..=last {
            let is_wall = walls.contains(&column);
            let (upper, lower) = match column {
                0 => ("┌", "└"),
                _ if column == last => ("┐", "┘"),
                _ if is_wall => ("┬", "┴"),
                _ => ("─", "─"),
            };
            self.write(0, AXIS_COLUMNS + column, upper);
            self.write(bottom, AXIS_COLUMNS + column, lower);
            for row in 1..bottom {
                if is_wall {
                    self.write(row, AXIS_COLUMNS + column, "│");
                }
            }
        }
    }

    fn draw_tile(&mut self, tile: &Tile, index: usize, space: Space) {
        let bands = shown(&tile.bands, space.rows);
        let busy: Vec<f64> = bands.iter().map(|band| band.busy).collect();
        let mut bottom = space.rows + 1;
        for (place, (band, rows)) in bands.iter().zip(band_rows(&busy, space.rows)).enumerate() {
            let top = bottom - rows;
            for row in top..bottom {
                for cell in &mut self.rows[row][space.left..space.left + space.columns] {
                    cell.on = Ground::Band { colour: band.colour, place };
                }
            }
            self.write_lines(&label::lines(band, space.text_columns(), rows), top, rows, space);
            bottom = top;
        }
        let number = index + 1;
        let units = tile.units;
        let plural = if units == 1 { "" } else { "s" };
        let names =
            [format!("P{number}: {units} unit{plural}"), format!("P{number}"), number.to_string()];
        self.write_below(&names, space);
    }

    fn draw_free(&mut self, units: u32, space: Space) {
        let lines: Vec<String> =
            ["best", "effort"].map(|word| label::abbreviated(word, space.text_columns())).into();
        self.write_lines(&lines, 1, space.rows, space);
        self.write_below(&[format!("{units} free"), "free".to_string()], space);
    }

    /// Writes lines into the middle of some rows.
    fn write_lines(&mut self, lines: &[String], top: usize, rows: usize, space: Space) {
        let first = top + rows.saturating_sub(lines.len()) / 2;
        for (row, line) in (first..).zip(lines) {
            self.write(row, space.left + space.margin(), line);
        }
    }

    fn write_below(&mut self, names: &[String], space: Space) {
        let Some(name) = label::fitting(names, space.columns) else { return };
        let margin = (space.columns - name.chars().count()) / 2;
        self.write(space.rows + 2, space.left + margin, name);
    }
}

/// The inside of a tile.
#[derive(Clone, Copy)]
struct Space {
    left: usize,
    columns: usize,
    rows: usize,
}

impl Space {
    /// Columns beside a label, where there is room for them.
    fn margin(self) -> usize {
        usize::from(self.columns > 8)
    }

    fn text_columns(self) -> usize {
        self.columns - 2 * self.margin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::plan::mosaic::Band;

    fn band(name: &str, colour: usize, busy: f64) -> Band {
        Band { name: name.into(), colour, batch: Some(8), rate_per_s: 123.0, busy }
    }

    fn mosaic(tiles: &[(u32, &[f64])], free_units: u32) -> Mosaic {
        let mut colour = 0;
        let tiles = tiles.iter().map(|(units, busy)| {
            let bands = busy.iter().map(|&busy| {
                colour += 1;
                band(&format!("model {colour}"), colour - 1, busy)
            });
            Tile { units: *units, bands: bands.collect() }
        });
        Mosaic { tiles: tiles.collect(), free_units }
    }

    fn colours_of_row(grid: &Grid, row: usize) -> Vec<usize> {
        let mut colours: Vec<usize> = Vec::new();
        for cell in &grid.rows[row] {
            if let Ground::Band { colour, .. } = cell.on
                && colours.last() != Some(&colour)
            {
                colours.push(colour);
            }
        }
        colours
    }

    #[test]
    fn columns_are_in_proportion_to_units_and_within_the_width() {
        for width in [40, 80, 100, 120, 237] {
            for tiles in [
                mosaic(&[(8, &[0.5]), (4, &[0.8]), (1, &[0.1])], 3),
                mosaic(&[(1, &[0.5][..]); 16], 0),
                mosaic(&[(100, &[0.5]), (30, &[0.2]), (1, &[0.2])], 1),
            ] {
                let walls = walls(&tiles, width - AXIS_COLUMNS - 1);
                let grid = Grid::new(&tiles, width);
                assert!(grid.rows.iter().all(|row| row.len() == grid.rows[0].len()));
                assert!(grid.rows[0].len() <= width, "{} in {width}", grid.rows[0].len());
                let inside = walls[walls.len() - 1] as f64;
                for (pair, units) in walls.windows(2).zip(tiles.widths()) {
                    let due = inside * f64::from(units) / f64::from(tiles.units());
                    let is_close = (pair[1] as f64 - pair[0] as f64 - due).abs() <= 2.0;
                    assert!(is_close, "{walls:?} in {width}");
                }
            }
        }
    }

    #[test]
    fn bands_of_a_tile_stand_on_each_other_and_time_without_work_is_bare() {
        let grid = Grid::new(&mosaic(&[(8, &[0.5, 0.25]), (8, &[0.9])], 0), 80);
        assert_eq!(grid.rows.len(), 23);
        assert_eq!(colours_of_row(&grid, 1), Vec::<usize>::new());
        assert_eq!(colours_of_row(&grid, 3), [2]);
        assert_eq!(colours_of_row(&grid, 6), [1, 2]);
        assert_eq!(colours_of_row(&grid, 11), [0, 2]);
        assert_eq!(colours_of_row(&grid, 20), [0, 2]);
        assert_eq!(colours_of_row(&grid, 21), Vec::<usize>::new());
    }

    #[test]
    fn every_model_appears_or_is_counted() {
        let text = |grid: &Grid| -> String {
            let line = |row: &Vec<Cell>| {
                row.iter().map(|cell| cell.what).chain(['\n']).collect::<String>()
            };
            grid.rows.iter().map(line).collect()
        };
        let few = text(&Grid::new(&mosaic(&[(12, &[0.02; 30])], 4), 80));
        for number in 1..=30 {
            assert!(few.contains(&format!("model {number}")), "{number} in\n{few}");
        }
        let shares: Vec<f64> = std::iter::repeat_n(0.02, 30).chain([0.001; 60]).collect();
        let many = text(&Grid::new(&mosaic(&[(12, &shares)], 4), 80));
        assert!(many.contains("model 30") && many.contains("+60 "), "{many}");
        assert!(many.contains("P1: 12 units") && many.contains("best") && many.contains("4 free"));
    }

    #[test]
    fn paper_that_is_too_narrow_is_no_reason_to_fail() {
        for width in 0..30 {
            let grid = Grid::new(&mosaic(&[(1, &[0.5, 0.2][..]); 12], 4), width);
            assert!(grid.rows.iter().all(|row| row.len() == grid.rows[0].len()));
        }
        assert!(Grid::new(&mosaic(&[], 0), 80).rows.len() > 20);
    }
}
