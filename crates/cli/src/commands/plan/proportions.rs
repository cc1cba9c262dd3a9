//! Units, shares of time and models rounded to the columns, rows and bands of a grid.

use super::mosaic::{Band, Mosaic};

/// The columns of the walls, the first at 0: partitions of the same size are of the same width wherever a unit has at least
/// two columns; where it has less, widths are rounded so that all of them are as wide as there is room.
pub(super) fn walls(mosaic: &Mosaic, columns: usize) -> Vec<usize> {
    let units = mosaic.units() as usize;
    if units == 0 {
        return Vec::new();
    }
    let per_unit = columns / units;
    let at = |unit: usize| if per_unit >= 2 { unit * per_unit } else { unit * columns / units };
    let mut walls = vec![0];
    let mut unit = 0;
    let tiles = mosaic.widths().count();
    for (index, width) in mosaic.widths().enumerate() {
        unit += width as usize;
        // Each tile has its wall, also where it is due less than a column.
        let last = columns.saturating_sub(tiles - index - 1);
        walls.push(at(unit).min(last).max(walls[index] + 1));
    }
    walls
}

/// The bands that are due at least half a row, as long as there are rows. What is past them stands together as the last,
/// since a row for each would make the partition look busier than it is.
pub(super) fn shown(bands: &[Band], rows: usize) -> Vec<Band> {
    let is_seen = |band: &&Band| band.busy * rows as f64 >= 0.5;
    let seen = bands.iter().take_while(is_seen).count().min(rows - 1);
    let (own, together) = bands.split_at(seen);
    let mut shown = own.to_vec();
    match together {
        [] => {}
        [only] => shown.push(only.clone()),
        [first, ..] => shown.push(Band {
            name: format!("+{}", together.len()),
            batch: None,
            rate_per_s: together.iter().map(|band| band.rate_per_s).sum(),
            busy: together.iter().map(|band| band.busy).sum(),
            ..first.clone()
        }),
    }
    shown
}

/// Rows for shares of the time: at least one for each, and else as many as it is due, rounded so that all together are what
/// the sum is due. There must be as many rows as shares.
pub(super) fn band_rows(busy: &[f64], rows: usize) -> Vec<usize> {
    let due = |share: f64| share * rows as f64;
    let total = due(busy.iter().sum()).round() as usize;
    let total = total.clamp(busy.len(), rows);
    let mut given: Vec<usize> = busy.iter().map(|&share| (due(share) as usize).max(1)).collect();
    let excess = |given: &[usize], at: usize| given[at] as f64 - due(busy[at]);
    while given.iter().sum::<usize>() != total {
        let is_short = given.iter().sum::<usize>() < total;
        let places = (0..busy.len()).filter(|&at| is_short || given[at] > 1);
        let by_excess =
            |left: &usize, right: &usize| excess(&given, *left).total_cmp(&excess(&given, *right));
        let at = match is_short {
            true => places.min_by(by_excess),
            false => places.max_by(by_excess),
        };
        let Some(at) = at else { break };
        given[at] = if is_short { given[at] + 1 } else { given[at] - 1 };
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_the_shares_and_everyone_has_one() {
        for (busy, rows) in [
            (vec![0.5, 0.25], vec![10, 5]),
            (vec![0.4, 0.01, 0.01], vec![6, 1, 1]),
            (vec![0.34, 0.32, 0.21], vec![7, 6, 4]),
            (vec![0.001; 20], vec![1; 20]),
            (vec![1.0], vec![20]),
        ] {
            assert_eq!(band_rows(&busy, 20), rows, "{busy:?}");
        }
    }
}
