//! What is multiplied: sizes and layouts, without any choice of how.

use weft_ir::Activation;

use super::tile::ROW_BYTES;
use crate::launch::Argument;
use crate::{Precision, Storage};

/// `output[m][n] = activation(sum over k of left(m, k) * right(n, k) + bias[n] + residual[m][n])`, for each of a stack
/// of products.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GemmProblem {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// How many products; their operands lie `stack_steps` elements apart.
    pub(crate) stack: usize,
    /// Of left, right and output; a step of 0 shares the operand.
    pub(crate) stack_steps: [usize; 3],
    pub(crate) left: Left,
    pub(crate) right: Right,
    /// How the bias is stored, where there is one.
    pub(crate) bias: Option<Storage>,
    pub(crate) has_residual: bool,
    pub(crate) activation: Option<Activation>,
    pub(crate) precision: Precision,
}

/// Where the rows of the left matrix come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// A matrix with k contiguous, and this many elements from row to row.
    Matrix {
        /// From row to row.
        stride: usize,
    },
    /// The windows of a channels-last image.
    Image(Image),
}

/// A channels-last image and the windows that a convolution takes of it, along rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) size: [usize; 2],
    pub(crate) channels: usize,
    pub(crate) output: [usize; 2],
    pub(crate) kernel: [usize; 2],
    pub(crate) strides: [usize; 2],
    pub(crate) dilations: [usize; 2],
    pub(crate) pads_begin: [usize; 2],
}

impl Image {
    /// True where the copy engine can bring windows: every step of the sum lies within one tap, and all that is said of
    /// windows fits its descriptions.
    pub(super) fn has_bulk_windows(&self, element_bytes: usize) -> bool {
        const FARTHEST_CORNER: usize = 127;
        const WIDEST_STRIDE: usize = 8;
        let fits = |axis: usize| {
            let reach = (self.kernel[axis] - 1) * self.dilations[axis];
            let end = (self.output[axis] - 1) * self.strides[axis];
            self.pads_begin[axis] <= FARTHEST_CORNER
                && reach <= FARTHEST_CORNER
                && (end as isize - (self.pads_begin[axis] + self.size[axis]) as isize + 1)
                    .unsigned_abs()
                    <= FARTHEST_CORNER
                && (1..=WIDEST_STRIDE).contains(&self.strides[axis])
        };
        (self.channels * element_bytes).is_multiple_of(ROW_BYTES) && fits(0) && fits(1)
    }
}

/// The layout of the right matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Right {
    /// n is contiguous, not k.
    pub(crate) by_rows: bool,
    /// From row to row.
    pub(crate) stride: usize,
    /// It is there before the predecessor ends.
    pub(crate) is_weights: bool,
}

/// What the arguments of a product are.
#[derive(Clone, Debug)]
pub(crate) struct Operands {
    pub(crate) left: Argument,
    pub(crate) right: Argument,
    pub(crate) bias: Argument,
    pub(crate) residual: Argument,
    pub(crate) output: Argument,
}

impl Operands {
    /// The addresses as the kernel's structure has them.
    pub(super) fn addresses(&self) -> [Argument; 5] {
        [&self.left, &self.right, &self.bias, &self.residual, &self.output].map(Argument::clone)
    }
}

/// Offsets in kernels are of 32 bits and signed.
const MAX_ELEMENTS: usize = i32::MAX as usize;

impl GemmProblem {
    /// Bytes of one element.
    pub(crate) fn element_bytes(&self) -> usize {
        self.precision.storage().size_bytes()
    }

    /// Steps of the sum over k, each of which covers [`ROW_BYTES`] of every row.
    pub(crate) fn steps(&self) -> usize {
        (self.k * self.element_bytes()).div_ceil(ROW_BYTES)
    }

    /// The widest load that fits the left operand's layout; `None` where not even 4 bytes do.
    pub(crate) fn left_load_bytes(&self) -> Option<usize> {
        let step = self.stack_steps[0];
        match self.left {
            Left::Matrix { stride } => self.widest(&[stride, step], &[4, 8, 16]),
            Left::Image(image) => self.widest(&[image.channels, step], &[4, 8, 16]),
        }
    }

    /// The widest load that fits the right operand's layout; `None` where not even 4 bytes do.
    pub(crate) fn right_load_bytes(&self) -> Option<usize> {
        self.widest(&[self.right.stride, self.stack_steps[1]], &[4, 8, 16])
    }

    /// How many neighbours of a row of the output are stored at once.
    pub(crate) fn store_elements(&self) -> usize {
        let bytes = self.element_bytes();
        let widths = [bytes, 2 * bytes, 4 * bytes, 8 * bytes];
        let fitting: Vec<usize> = widths.into_iter().filter(|&width| width <= 16).collect();
        let widest = self.widest(&[self.n, self.stack_steps[2]], &fitting).unwrap_or(bytes);
        widest / bytes
    }

    /// The widest of `widths`, given in increasing order, that divides every distance in elements.
    fn widest(&self, distances: &[usize], widths: &[usize]) -> Option<usize> {
        let fits = |width: usize| {
            width >= self.element_bytes()
                && distances
                    .iter()
                    .all(|distance| (distance * self.element_bytes()).is_multiple_of(width))
        };
        widths.iter().copied().rev().find(|&width| fits(width))
    }

    /// True where the kernel can compute it: sizes within 32 bits, layouts that its loads fit.
    pub(crate) fn is_supported(&self) -> bool {
        let left_elements = match self.left {
            Left::Matrix { stride } => self.m.checked_mul(stride),
            Left::Image(image) => self
                .m
                .div_ceil((image.output[0] * image.output[1]).max(1))
                .checked_mul(image.size[0] * image.size[1] * image.channels),
        };
        let right_rows = if self.right.by_rows { self.k } else { self.n };
        let sizes =
            [left_elements, right_rows.checked_mul(self.right.stride), self.m.checked_mul(self.n)];
        let is_empty = self.m == 0 || self.n == 0 || self.k == 0 || self.stack == 0;
        !is_empty
            && self.stack <= 65_535
            && sizes.iter().all(|size| size.is_some_and(|size| size <= MAX_ELEMENTS))
            && self.left_load_bytes().is_some()
            && self.right_load_bytes().is_some()
    }
}
