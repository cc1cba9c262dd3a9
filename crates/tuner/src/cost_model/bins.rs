//! Features by rank: what a tree may split at, and on which side of it each row lies.

use super::TrainingRows;

/// How many values of a feature a split can tell apart.
pub(super) const BINS: usize = 64;

/// The features of all rows as small integers, column by column.
pub(super) struct Bins {
    rows: usize,
    /// For each feature, ascending: a row lies in the bin that counts the cuts its value reaches.
    cuts: Vec<Vec<f32>>,
    codes: Vec<u8>,
}

impl Bins {
    pub(super) fn new(rows: &TrainingRows) -> Self {
        let cuts: Vec<_> = (0..rows.width()).map(|feature| cuts(rows.column(feature))).collect();
        let mut codes = Vec::with_capacity(rows.len() * rows.width());
        for (feature, cuts) in cuts.iter().enumerate() {
            // Not a number reaches no cut, here and in `Tree::leaf`.
            let code = |value: f32| cuts.partition_point(|&cut| value >= cut) as u8;
            codes.extend(rows.column(feature).map(code));
        }
        Self { rows: rows.len(), cuts, codes }
    }

    /// The features that tell any two rows apart.
    pub(super) fn useful_features(&self) -> Vec<usize> {
        (0..self.cuts.len()).filter(|&feature| !self.cuts[feature].is_empty()).collect()
    }

    pub(super) fn column(&self, feature: usize) -> &[u8] {
        &self.codes[feature * self.rows..][..self.rows]
    }

    /// How many bins a feature has.
    pub(super) fn count(&self, feature: usize) -> usize {
        self.cuts[feature].len() + 1
    }

    /// The value from which on a row lies in a bin past `bin`.
    pub(super) fn cut(&self, feature: usize, bin: usize) -> f32 {
        self.cuts[feature][bin]
    }
}

/// Values that part a column into at most [`BINS`] bins: all that occur where they are few, else at even ranks.
fn cuts(column: impl Iterator<Item = f32>) -> Vec<f32> {
    let mut values: Vec<f32> = column.collect();
    let has_missing = values.iter().any(|value| value.is_nan());
    values.retain(|value| !value.is_nan());
    values.sort_unstable_by(f32::total_cmp);
    let mut distinct = values.clone();
    distinct.dedup();
    // The first value is a cut only where there is something below it: rows without a value.
    let first = usize::from(!has_missing);
    if distinct.len() < BINS {
        return distinct.split_off(first.min(distinct.len()));
    }
    let mut cuts: Vec<f32> = (1..BINS).map(|rank| values[rank * values.len() / BINS]).collect();
    cuts.dedup();
    cuts.retain(|&cut| has_missing || cut > values[0]);
    cuts
}
