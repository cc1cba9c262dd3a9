//! Owns the description of what is done to a product before it is stored.

use super::extent;
use crate::Activation;

/// What is done to a product before it is stored: bias, then residual and activation in either order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Epilogue<'a> {
    /// One value per column, added first.
    pub bias: Option<&'a [f32]>,
    /// A matrix of the shape of the result, added to it.
    pub residual: Option<Residual<'a>>,
    /// Applied last, or before the residual is added.
    pub activation: Activation,
}

/// A matrix that is added to a result. It must not overlap the result in memory.
#[derive(Debug, Clone, Copy)]
pub struct Residual<'a> {
    /// Its values; for a batch, found at the same offsets as the result's.
    pub data: &'a [f32],
    /// From one row to the next, in values.
    pub row_stride: usize,
    /// Whether the activation is applied before the residual is added, instead of after.
    pub after_activation: bool,
}

impl Epilogue<'_> {
    /// Asserts that the operands cover a result of the given shape.
    pub(super) fn check(&self, rows: usize, columns: usize) {
        self.check_at(0, rows, columns);
    }

    /// The same for a result at some offset in its buffer.
    pub(super) fn check_at(&self, offset: usize, rows: usize, columns: usize) {
        if let Some(bias) = self.bias {
            assert!(bias.len() >= columns, "bias of a product is too short");
        }
        if let Some(residual) = self.residual {
            let end = extent(rows, columns, residual.row_stride)
                .and_then(|extent| extent.checked_add(offset));
            assert!(
                end.is_some_and(|end| end <= residual.data.len()),
                "residual of a product is too short"
            );
        }
    }
}
