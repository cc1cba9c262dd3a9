//! The measurements that a cost model learns from.

use thiserror::Error;

/// How many rows a cost model learns from at most.
pub const MAX_ROWS: usize = 1 << 16;

/// How many features a row has at most.
pub const MAX_FEATURES: usize = 1024;

/// Features of candidates, with what was measured of them: the natural logarithm of the time relative to that of the
/// operator's reference, so that rows of all operators of a platform can stand side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainingRows {
    width: usize,
    /// Row by row.
    features: Vec<f32>,
    targets: Vec<f32>,
}

/// Why a row was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RowError {
    /// It describes something else than the rows before it.
    #[error("a row of {width} features among rows of {expected}")]
    Width {
        /// How many features it has.
        width: usize,
        /// How many the rows before it have.
        expected: usize,
    },
    /// It describes more than a model takes in.
    #[error("a row of {width} features (the limit is {MAX_FEATURES})")]
    TooWide {
        /// How many features it has.
        width: usize,
    },
    /// Its target says nothing.
    #[error("a target that is not finite")]
    Target,
    /// There are enough.
    #[error("more than {MAX_ROWS} rows")]
    Full,
}

impl TrainingRows {
    /// Takes one more measurement. Features may be anything, `NaN` where one does not apply; all rows must have equally
    /// many.
    pub fn push(&mut self, features: &[f32], target: f32) -> Result<(), RowError> {
        if features.len() > MAX_FEATURES {
            return Err(RowError::TooWide { width: features.len() });
        }
        if self.is_empty() {
            self.width = features.len();
        }
        if features.len() != self.width {
            return Err(RowError::Width { width: features.len(), expected: self.width });
        }
        if !target.is_finite() {
            return Err(RowError::Target);
        }
        if self.len() == MAX_ROWS {
            return Err(RowError::Full);
        }
        self.features.extend_from_slice(features);
        self.targets.push(target);
        Ok(())
    }

    /// Takes other rows too, up to the first that it cannot take.
    pub fn append(&mut self, other: &Self) -> Result<(), RowError> {
        other.iter().zip(&other.targets).try_for_each(|(row, &target)| self.push(row, target))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// How many features each has.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn targets(&self) -> &[f32] {
        &self.targets
    }

    /// The features of each row.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[f32]> + '_ {
        (0..self.len()).map(|row| &self.features[row * self.width..][..self.width])
    }

    /// One feature of all rows.
    pub(super) fn column(&self, feature: usize) -> impl Iterator<Item = f32> + '_ {
        self.features.iter().skip(feature).step_by(self.width.max(1)).copied()
    }
}
