//! Operators that move elements or change shapes without computing.

mod concat;
mod expand;
mod flatten;
mod identity;
mod pad;
mod reshape;
pub(super) mod selection;
mod shape;
mod slice;
mod split;
mod squeeze;
mod tile;
mod transpose;
mod unsqueeze;
mod view;

pub use concat::{Concat, concat};
pub use expand::Expand;
pub use flatten::Flatten;
pub use identity::Identity;
pub use pad::{Pad, PadMode};
pub use reshape::Reshape;
pub use slice::{AxisRange, Slice, SliceBounds};
pub use split::Split;
pub use squeeze::Squeeze;
pub use tile::Tile;
pub use transpose::{Transpose, transpose};
pub use unsqueeze::Unsqueeze;
pub use view::is_view;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("Concat", concat::build),
    Registration::standard("Expand", expand::build),
    Registration::standard("Flatten", flatten::build),
    Registration::standard("Identity", identity::build),
    Registration::standard("Pad", pad::build),
    Registration::standard("Reshape", reshape::build),
    Registration::standard("Shape", shape::build_shape),
    Registration::standard("Size", shape::build_size),
    Registration::standard("Slice", slice::build),
    Registration::standard("Split", split::build),
    Registration::standard("Squeeze", squeeze::build),
    Registration::standard("Tile", tile::build),
    Registration::standard("Transpose", transpose::build),
    Registration::standard("Unsqueeze", unsqueeze::build),
];
