//! Operators that move elements or change shapes without computing.

mod center_crop_pad;
mod column_to_image;
mod concat;
mod constant;
mod constant_of_shape;
mod depth_space;
mod expand;
mod eye_like;
mod flatten;
mod identity;
mod pad;
mod range;
mod reshape;
mod reverse_sequence;
pub(super) mod selection;
mod shape;
mod slice;
mod split;
mod squeeze;
mod tile;
mod transpose;
mod trilu;
mod unsqueeze;
mod view;

pub use concat::{Concat, concat, stack};
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
    Registration::standard("CenterCropPad", center_crop_pad::build),
    Registration::standard("Col2Im", column_to_image::build),
    Registration::standard("Concat", concat::build),
    Registration::standard("Constant", constant::build),
    Registration::standard("ConstantOfShape", constant_of_shape::build),
    Registration::standard("DepthToSpace", depth_space::build_depth_to_space),
    Registration::standard("Expand", expand::build),
    Registration::standard("EyeLike", eye_like::build),
    Registration::standard("Flatten", flatten::build),
    Registration::standard("Identity", identity::build),
    Registration::standard("Pad", pad::build),
    Registration::standard("Range", range::build),
    Registration::standard("Reshape", reshape::build),
    Registration::standard("ReverseSequence", reverse_sequence::build),
    Registration::standard("Shape", shape::build_shape),
    Registration::standard("Size", shape::build_size),
    Registration::standard("Slice", slice::build),
    Registration::standard("SpaceToDepth", depth_space::build_space_to_depth),
    Registration::standard("Split", split::build),
    Registration::standard("Squeeze", squeeze::build),
    Registration::standard("Tile", tile::build),
    Registration::standard("Transpose", transpose::build),
    Registration::standard("Trilu", trilu::build),
    Registration::standard("Unsqueeze", unsqueeze::build),
];
