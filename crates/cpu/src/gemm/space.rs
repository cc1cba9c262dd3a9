//! Owns the space of parameters that products are tuned over.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::parameters::{GemmCut, GemmParameters, GemmShape, PanelWidth, RowCopies, TileLimits};
use crate::Isa;

/// What each parameter is varied over, next to one another what differs little.
const DEPTHS: [usize; 5] = [128, 256, 512, 1024, 4096];
const ROWS: [usize; 5] = [24, 60, 240, 960, 3840];
const PANEL_VALUES: [usize; 5] = [8 << 10, 32 << 10, 128 << 10, 512 << 10, 2048 << 10];
const TILES_PER_WORKER: [usize; 3] = [2, 4, 8];
const WIDTHS: [PanelWidth; 2] = [PanelWidth::Full, PanelWidth::OneVector];
const COPIES: [RowCopies; 3] = [RowCopies::Never, RowCopies::AsNeeded, RowCopies::Always];

/// The most candidates for one product; what is left out is the farthest from the usual parameters.
const MOST_CANDIDATES: usize = 160;

/// Every point of the space, the usual parameters first and the others by how far they are from them.
static SPACE: LazyLock<Vec<GemmParameters>> = LazyLock::new(|| {
    let mut space = points();
    space.sort_by_key(distance);
    space
});

/// Every point of the space by what it is written as.
static BY_NAME: LazyLock<HashMap<String, GemmParameters>> =
    LazyLock::new(|| SPACE.iter().map(|point| (point.to_string(), *point)).collect());

fn points() -> Vec<GemmParameters> {
    let mut points = vec![GemmParameters::default()];
    vary(&mut points, &DEPTHS, |point, depth| point.limits.depth = depth);
    vary(&mut points, &ROWS, |point, rows| point.limits.rows = rows);
    vary(&mut points, &PANEL_VALUES, |point, values| point.limits.panel_values = values);
    vary(&mut points, &TILES_PER_WORKER, |point, tiles| point.limits.tiles_per_worker = tiles);
    vary(&mut points, &COPIES, |point, copies| point.limits.copies = copies);
    vary(&mut points, &WIDTHS, |point, width| point.width = width);
    points
}

/// Every point with every value of one more parameter.
fn vary<T: Copy>(
    points: &mut Vec<GemmParameters>,
    values: &[T],
    set: impl Fn(&mut GemmParameters, T),
) {
    *points = points
        .iter()
        .flat_map(|point| {
            values.iter().map(|&value| {
                let mut varied = *point;
                set(&mut varied, value);
                varied
            })
        })
        .collect();
}

/// How many steps lie between a point and the usual parameters.
fn distance(point: &GemmParameters) -> usize {
    fn steps<T: PartialEq>(values: &[T], value: T, usual: T) -> usize {
        let place = |wanted: T| values.iter().position(|value| *value == wanted).unwrap_or(0);
        place(value).abs_diff(place(usual))
    }
    let (limits, usual) = (&point.limits, TileLimits::default());
    steps(&DEPTHS, limits.depth, usual.depth)
        + steps(&ROWS, limits.rows, usual.rows)
        + steps(&PANEL_VALUES, limits.panel_values, usual.panel_values)
        + steps(&TILES_PER_WORKER, limits.tiles_per_worker, usual.tiles_per_worker)
        + steps(&COPIES, limits.copies, usual.copies)
        + steps(&WIDTHS, point.width, PanelWidth::default())
}

impl GemmParameters {
    /// The parameters that are written like this.
    pub fn named(name: &str) -> Option<Self> {
        BY_NAME.get(name).copied()
    }

    /// The parameters that cut a product differently, the usual ones first.
    pub fn candidates(isa: Isa, shape: &GemmShape, workers: usize) -> Vec<Self> {
        let mut found: Vec<(GemmCut, Self)> = Vec::new();
        for parameters in SPACE.iter() {
            let cut = parameters.cut(isa, shape, workers);
            if found.iter().all(|(known, _)| *known != cut) {
                found.push((cut, *parameters));
            }
            if found.len() == MOST_CANDIDATES {
                break;
            }
        }
        found.into_iter().map(|(_, parameters)| parameters).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_a_name_of_its_own() {
        assert_eq!(SPACE[0], GemmParameters::default());
        assert_eq!(BY_NAME.len(), SPACE.len());
        for point in SPACE.iter() {
            assert_eq!(GemmParameters::named(&point.to_string()), Some(*point));
        }
        for name in ["", "depth 512", "depth 511 rows 240 panels 128k tiles 4"] {
            assert_eq!(GemmParameters::named(name), None, "{name}");
        }
    }

    #[test]
    fn candidates_cut_differently_and_are_not_too_many() {
        for (rows, depth, columns) in
            [(1, 512, 1000), (49, 4608, 512), (196, 1024, 256), (3136, 64, 64), (12544, 147, 64)]
        {
            for (isa, workers) in Isa::ALL.into_iter().flat_map(|isa| [(isa, 1), (isa, 8)]) {
                let shape = GemmShape { rows, depth, columns, stride: Some(depth) };
                let candidates = GemmParameters::candidates(isa, &shape, workers);
                assert_eq!(candidates[0], GemmParameters::default());
                assert!(candidates.len() <= MOST_CANDIDATES);
                let cuts: Vec<GemmCut> =
                    candidates.iter().map(|point| point.cut(isa, &shape, workers)).collect();
                for (index, cut) in cuts.iter().enumerate() {
                    assert!(!cuts[..index].contains(cut), "{}", candidates[index]);
                }
            }
        }
    }
}
