//! Descriptions of tensors for the copy engine, as this emulator lays them out in the 128 bytes that a program keeps for one.

mod layout;
mod limits;

pub(crate) use layout::SIZE_BYTES;
pub(crate) use limits::{Described, MAX_AXES, Refusal};

/// A tensor as the copy engine sees it, innermost axis first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorMap {
    pub(crate) base: u64,
    pub(crate) element_bytes: u32,
    /// Sizes of the axes, in elements.
    pub(crate) sizes: Vec<u64>,
    /// Distances between neighbours along every axis but the innermost, in bytes.
    pub(crate) strides_bytes: Vec<u64>,
    pub(crate) copied: Copied,
    /// Bytes after which the pattern of the shared memory layout repeats: 0, 32, 64 or 128.
    pub(crate) swizzle_bytes: u32,
}

/// What is moved at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// A box of so many elements along every axis.
    Box(Vec<u32>),
    /// Windows of images: axes are channels, columns, rows, images.
    Windows {
        channels: u32,
        count: u32,
        /// Lower and upper corner, along columns and rows.
        first: [i32; 2],
        last: [i32; 2],
        /// From one window to the next, along columns and rows.
        steps: [u32; 2],
    },
}

/// Axes of images: channels, columns, rows, images.
pub(crate) const IMAGE_AXES: usize = 4;
