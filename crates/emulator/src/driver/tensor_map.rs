//! Descriptions of tensors for the copy engine, as programs ask for them.

use std::ffi::{c_int, c_uint};

use super::error::{Code, answer};
use super::places::{give, list};
use crate::tensor_map::{Copied, Described, IMAGE_AXES, MAX_AXES, Refusal, SIZE_BYTES, TensorMap};

/// Programs keep it as numbers of 8 bytes.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Encoded([u8; SIZE_BYTES]);

impl From<Refusal> for Code {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid => Self::InvalidValue,
            Refusal::Unsupported => Self::NotSupported,
        }
    }
}

fn element_bytes(data_type: c_uint) -> Result<u32, Code> {
    match data_type {
        0 => Ok(1),
        1 | 6 | 9 => Ok(2),
        2 | 3 | 7 | 10..=12 => Ok(4),
        4 | 5 | 8 => Ok(8),
        // Packed elements of four and six bits.
        13..=15 => Err(Code::NotSupported),
        _ => Err(Code::InvalidValue),
    }
}

fn swizzle_bytes(swizzle: c_uint) -> Result<u32, Code> {
    match swizzle {
        0 => Ok(0),
        1..=3 => Ok(16 << swizzle),
        // Patterns of other atoms.
        4..=6 => Err(Code::NotSupported),
        _ => Err(Code::InvalidValue),
    }
}

/// Refuses what is known to the driver and not done here: interleaved layouts, and fills that are not zero. How much of
/// the L2 cache is filled at once changes no result.
fn check_modes(interleave: c_uint, promotion: c_uint, fill: c_uint) -> Result<(), Code> {
    match (interleave, promotion, fill) {
        (0, 0..=3, 0) => Ok(()),
        (0..=2, 0..=3, 0..=1) => Err(Code::NotSupported),
        _ => Err(Code::InvalidValue),
    }
}

fn axes_of(rank: c_uint) -> Result<usize, Code> {
    let axes = rank as usize;
    if (1..=MAX_AXES).contains(&axes) { Ok(axes) } else { Err(Code::InvalidValue) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuTensorMapEncodeTiled(
    place: *mut Encoded,
    data_type: c_uint,
    rank: c_uint,
    base: u64,
    sizes: *const u64,
    strides_bytes: *const u64,
    sides: *const u32,
    steps: *const u32,
    interleave: c_uint,
    swizzle: c_uint,
    promotion: c_uint,
    fill: c_uint,
) -> Code {
    answer(|| {
        let axes = axes_of(rank)?;
        check_modes(interleave, promotion, fill)?;
        // SAFETY: the lists are null or have an element for each axis, the strides one less.
        let (sizes, strides_bytes, sides, steps) = unsafe {
            (
                list(sizes, axes)?,
                list(strides_bytes, axes - 1)?,
                list(sides, axes)?,
                list(steps, axes)?,
            )
        };
        let map = TensorMap {
            base,
            element_bytes: element_bytes(data_type)?,
            sizes,
            strides_bytes,
            copied: Copied::Box(sides),
            swizzle_bytes: swizzle_bytes(swizzle)?,
        };
        let map = Described { map, steps }.checked()?;
        // SAFETY: the caller gives null or a place for a description.
        unsafe { give(place, Encoded(map.encode())) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuTensorMapEncodeIm2col(
    place: *mut Encoded,
    data_type: c_uint,
    rank: c_uint,
    base: u64,
    sizes: *const u64,
    strides_bytes: *const u64,
    first: *const c_int,
    last: *const c_int,
    channels: c_uint,
    count: c_uint,
    steps: *const u32,
    interleave: c_uint,
    swizzle: c_uint,
    promotion: c_uint,
    fill: c_uint,
) -> Code {
    answer(|| {
        let axes = axes_of(rank)?;
        check_modes(interleave, promotion, fill)?;
        if axes != IMAGE_AXES {
            return Err(if axes < 3 { Code::InvalidValue } else { Code::NotSupported });
        }
        let along = |corner: Vec<c_int>| [corner[0], corner[1]];
        // SAFETY: the lists are null or have an element for each axis, the strides one less, and corners two less.
        let (sizes, strides_bytes, first, last, steps) = unsafe {
            (
                list(sizes, axes)?,
                list(strides_bytes, axes - 1)?,
                along(list(first, axes - 2)?),
                along(list(last, axes - 2)?),
                list(steps, axes)?,
            )
        };
        let map = TensorMap {
            base,
            element_bytes: element_bytes(data_type)?,
            sizes,
            strides_bytes,
            copied: Copied::Windows { channels, count, first, last, steps: [steps[1], steps[2]] },
            swizzle_bytes: swizzle_bytes(swizzle)?,
        };
        let map = Described { map, steps }.checked()?;
        // SAFETY: the caller gives null or a place for a description.
        unsafe { give(place, Encoded(map.encode())) }
    })
}
