//! What the driver refuses to describe.

use super::{Copied, IMAGE_AXES, TensorMap};

/// Alignment of what the copy engine reads and writes.
const ALIGNMENT_BYTES: u64 = 16;
pub(crate) const MAX_AXES: usize = 5;
const MAX_SIZE: u64 = 1 << 32;
const STRIDE_LIMIT_BYTES: u64 = 1 << 40;
const MAX_SIDE: u32 = 256;
const MAX_CHANNELS: u32 = 256;
const MAX_WINDOWS: u32 = 1024;
const MAX_STEP: u32 = 8;
/// Corners of windows of images.
const CORNERS: std::ops::RangeInclusive<i32> = -128..=127;

/// A tensor with the steps along its axes, as a program describes it.
pub(crate) struct Described {
    pub(crate) map: TensorMap,
    /// From one element to the next along each axis, or from one window to the next.
    pub(crate) steps: Vec<u32>,
}

/// Why a tensor is not described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The driver takes no such tensor.
    Invalid,
    /// The driver takes it, and this emulator does not.
    Unsupported,
}

impl Described {
    /// The tensor, where the driver takes it.
    pub(crate) fn checked(self) -> Result<TensorMap, Refusal> {
        let Self { map, steps } = self;
        let are_steps = |step: &u32| (1..=MAX_STEP).contains(step);
        let has_all = steps.len() == map.sizes.len();
        if !is_within_limits(&map) || !has_all || !steps.iter().all(are_steps) {
            return Err(Refusal::Invalid);
        }
        // The innermost axis has no steps, whatever is asked for; those along columns and rows are the windows' own.
        let others = match map.copied {
            Copied::Box(_) => &steps[1..],
            Copied::Windows { .. } => &steps[IMAGE_AXES - 1..],
        };
        match others.iter().all(|&step| step == 1) {
            true => Ok(map),
            false => Err(Refusal::Unsupported),
        }
    }
}

fn is_within_limits(map: &TensorMap) -> bool {
    let axes = map.sizes.len();
    let inner = match &map.copied {
        Copied::Box(sides) => sides.first(),
        Copied::Windows { channels, .. } => Some(channels),
    };
    let Some(&inner) = inner else { return false };
    let inner_bytes = u64::from(inner) * u64::from(map.element_bytes);
    (1..=MAX_AXES).contains(&axes)
        && map.strides_bytes.len() + 1 == axes
        && map.base.is_multiple_of(ALIGNMENT_BYTES)
        && map.sizes.iter().all(|size| (1..=MAX_SIZE).contains(size))
        && map
            .strides_bytes
            .iter()
            .all(|&stride| stride.is_multiple_of(ALIGNMENT_BYTES) && stride < STRIDE_LIMIT_BYTES)
        && inner_bytes.is_multiple_of(ALIGNMENT_BYTES)
        && (map.swizzle_bytes == 0 || inner_bytes <= u64::from(map.swizzle_bytes))
        && match &map.copied {
            Copied::Box(sides) => {
                sides.len() == axes && sides.iter().all(|side| (1..=MAX_SIDE).contains(side))
            }
            Copied::Windows { channels, count, first, last, .. } => {
                axes == IMAGE_AXES
                    && (1..=MAX_CHANNELS).contains(channels)
                    && (1..=MAX_WINDOWS).contains(count)
                    && first.iter().chain(last).all(|corner| CORNERS.contains(corner))
                    && (0..2).all(|axis| {
                        let size = map.sizes[axis + 1] as i64;
                        size + i64::from(last[axis]) - i64::from(first[axis]) > 0
                    })
            }
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxes() -> Described {
        let map = TensorMap {
            base: 1 << 20,
            element_bytes: 2,
            sizes: vec![128, 200],
            strides_bytes: vec![256],
            copied: Copied::Box(vec![64, 64]),
            swizzle_bytes: 128,
        };
        Described { map, steps: vec![1, 1] }
    }

    fn windows(change: impl FnOnce(&mut TensorMap, &mut Vec<u32>)) -> Result<TensorMap, Refusal> {
        let mut map = TensorMap {
            sizes: vec![64, 7, 7, 3],
            strides_bytes: vec![128, 896, 6272],
            copied: Copied::Windows {
                channels: 64,
                count: 1024,
                first: [-1, -1],
                last: [-1, -1],
                steps: [2, 2],
            },
            ..boxes().map
        };
        let mut steps = vec![1, 2, 2, 1];
        change(&mut map, &mut steps);
        Described { map, steps }.checked()
    }

    #[test]
    fn what_the_copy_engine_can_move_is_described() {
        assert!(boxes().checked().is_ok());
        assert!(windows(|_, _| ()).is_ok());
        let mut other = boxes();
        other.steps = vec![3, 1];
        assert!(other.checked().is_ok(), "the step of the innermost axis is not looked at");
    }

    #[test]
    fn what_the_driver_refuses_is_refused() {
        type Change = fn(&mut TensorMap, &mut Vec<u32>);
        let changes: [Change; 16] = [
            |map, _| map.base += 8,
            |map, _| map.sizes[1] = 0,
            |map, _| map.sizes[0] = MAX_SIZE + 1,
            |map, _| map.strides_bytes[0] = 264,
            |map, _| map.strides_bytes[0] = STRIDE_LIMIT_BYTES,
            |map, _| map.strides_bytes.clear(),
            |map, _| map.copied = Copied::Box(vec![64, 257]),
            |map, _| map.copied = Copied::Box(vec![64, 0]),
            |map, _| map.copied = Copied::Box(vec![64]),
            |map, _| map.copied = Copied::Box(vec![60, 64]),
            |map, _| map.copied = Copied::Box(vec![72, 64]),
            |map, _| map.swizzle_bytes = 64,
            |_, steps| steps[1] = 0,
            |_, steps| steps[0] = 9,
            |map, steps| {
                map.sizes = vec![16; 6];
                map.strides_bytes = vec![32; 5];
                map.copied = Copied::Box(vec![16; 6]);
                steps.resize(6, 1);
            },
            |map, steps| {
                map.sizes.clear();
                map.copied = Copied::Box(Vec::new());
                steps.clear();
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let Described { mut map, mut steps } = boxes();
            change(&mut map, &mut steps);
            let refused = Described { map, steps }.checked();
            assert_eq!(refused, Err(Refusal::Invalid), "change {number}");
        }
        let mut spread = boxes();
        spread.steps[1] = 2;
        assert_eq!(spread.checked(), Err(Refusal::Unsupported));
    }

    #[test]
    fn windows_outside_their_limits_are_refused() {
        let other = |channels, count, first, last| {
            let steps = [2, 2];
            windows(|map, _| {
                map.copied = Copied::Windows { channels, count, first, last, steps };
            })
        };
        assert!(other(64, 1, [-128, -128], [127, 127]).is_ok());
        for refused in [
            other(0, 1, [0, 0], [0, 0]),
            other(64, 0, [0, 0], [0, 0]),
            other(64, 1025, [0, 0], [0, 0]),
            other(264, 1, [0, 0], [0, 0]),
            other(64, 1, [-129, 0], [0, 0]),
            other(64, 1, [0, 0], [0, 128]),
            other(64, 1, [0, 0], [0, -7]),
            windows(|_, steps| steps[2] = 9),
            windows(|map, _| map.sizes.truncate(3)),
        ] {
            assert_eq!(refused, Err(Refusal::Invalid));
        }
        assert_eq!(windows(|_, steps| steps[3] = 2), Err(Refusal::Unsupported));
    }
}
