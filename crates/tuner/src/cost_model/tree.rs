//! One regression tree.

use super::bins::Bins;
use super::histogram::Histogram;

const DEPTH: usize = 5;
const INNER: usize = (1 << DEPTH) - 1;
const LEAVES: usize = 1 << DEPTH;

/// Added to the number of rows in a leaf, so that few rows move a prediction little.
pub(super) const REGULARISATION: f32 = 1.0;

/// A complete tree, so that finding a leaf takes no branch: a node that would not be split leads everywhere to the same
/// value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree {
    features: [u16; INNER],
    cuts: [f32; INNER],
    leaves: [f32; LEAVES],
}

/// What a tree is grown from.
pub(super) struct Soil<'a> {
    pub(super) bins: &'a Bins,
    /// What is to be explained, for each row.
    pub(super) residuals: &'a [f32],
    /// The features that may be split at.
    pub(super) features: &'a [usize],
    /// How much of the mean of its rows a leaf says.
    pub(super) shrinkage: f32,
}

impl Tree {
    /// Fits the residuals of `rows`, whose order changes.
    pub(super) fn grow(soil: &Soil<'_>, rows: &mut [u32]) -> Self {
        let mut tree =
            Self { features: [0; INNER], cuts: [f32::INFINITY; INNER], leaves: [0.0; LEAVES] };
        let histogram = soil.histogram(rows);
        tree.part(soil, rows, histogram, 0);
        tree
    }

    fn part(&mut self, soil: &Soil<'_>, rows: &mut [u32], histogram: Histogram, node: usize) {
        let Some(split) = histogram.best_split(soil.bins, soil.features) else {
            return self.fill(node, soil.leaf(rows));
        };
        self.features[node] = split.feature as u16;
        self.cuts[node] = soil.bins.cut(split.feature, split.bin);
        let column = soil.bins.column(split.feature);
        let middle = part_in_place(rows, |row| usize::from(column[row as usize]) <= split.bin);
        let (below, above) = rows.split_at_mut(middle);
        let (left, right) = (2 * node + 1, 2 * node + 2);
        if left >= INNER {
            self.fill(left, soil.leaf(below));
            self.fill(right, soil.leaf(above));
        } else if below.len() <= above.len() {
            let of_below = soil.histogram(below);
            let of_above = histogram.without(&of_below);
            self.part(soil, below, of_below, left);
            self.part(soil, above, of_above, right);
        } else {
            let of_above = soil.histogram(above);
            let of_below = histogram.without(&of_above);
            self.part(soil, below, of_below, left);
            self.part(soil, above, of_above, right);
        }
    }

    fn fill(&mut self, node: usize, value: f32) {
        if node >= INNER {
            self.leaves[node - INNER] = value;
        } else {
            self.fill(2 * node + 1, value);
            self.fill(2 * node + 2, value);
        }
    }

    /// What the tree says of a row.
    pub(super) fn value(&self, row: &[f32]) -> f32 {
        let mut node = 0;
        for _ in 0..DEPTH {
            let reaches = row[usize::from(self.features[node])] >= self.cuts[node];
            node = 2 * node + 1 + usize::from(reaches);
        }
        self.leaves[node - INNER]
    }
}

impl Soil<'_> {
    fn histogram(&self, rows: &[u32]) -> Histogram {
        Histogram::new(self.bins, self.features, self.residuals, rows)
    }

    fn leaf(&self, rows: &[u32]) -> f32 {
        let sum: f32 = rows.iter().map(|&row| self.residuals[row as usize]).sum();
        self.shrinkage * sum / (rows.len() as f32 + REGULARISATION)
    }
}

/// Moves the rows that `is_below` to the front, and counts them; without a branch, which would be a coin toss.
fn part_in_place(rows: &mut [u32], is_below: impl Fn(u32) -> bool) -> usize {
    let mut middle = 0;
    for position in 0..rows.len() {
        rows.swap(position, middle);
        middle += usize::from(is_below(rows[middle]));
    }
    middle
}
