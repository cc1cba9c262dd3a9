//! The bytes of a description.

use super::{Copied, IMAGE_AXES, MAX_AXES, TensorMap};

/// How many bytes a description has.
pub(crate) const SIZE_BYTES: usize = 128;

/// What every description begins with, so that other bytes are not taken for one.
const MAGIC: u64 = 0x4157_4546_545f_4d50;

const OF_BOX: u64 = 1;
const OF_WINDOWS: u64 = 2;

/// The numbers that a description consists of, in order.
type Numbers = [u64; SIZE_BYTES / 8];

/// Puts numbers of few bits side by side.
fn packed<const N: usize>(bits: [u32; N], parts: [u64; N]) -> u64 {
    let parts = parts.into_iter().zip(bits).rev();
    parts.fold(0, |word, (part, bits)| word << bits | part & ((1 << bits) - 1))
}

fn unpacked<const N: usize>(mut word: u64, bits: [u32; N]) -> [u64; N] {
    bits.map(|bits| {
        let part = word & ((1 << bits) - 1);
        word >>= bits;
        part
    })
}

/// Element size, axes, swizzle and kind.
const OF_HEAD: [u32; 4] = [8, 8, 16, 8];
/// Channels, windows, and steps along columns and rows.
const OF_WINDOW: [u32; 4] = [16, 16, 8, 8];
/// Corners, along columns and rows.
const OF_CORNERS: [u32; 4] = [16, 16, 16, 16];
const OF_SIDES: [u32; 6] = [10, 10, 10, 10, 10, 10];

const SIZES_AT: usize = 3;
const STRIDES_AT: usize = SIZES_AT + MAX_AXES;
const COPIED_AT: usize = STRIDES_AT + MAX_AXES - 1;

impl TensorMap {
    /// The description of a tensor that is within the limits of one.
    pub(crate) fn encode(&self) -> [u8; SIZE_BYTES] {
        let mut numbers = Numbers::default();
        let kind = match self.copied {
            Copied::Box(_) => OF_BOX,
            Copied::Windows { .. } => OF_WINDOWS,
        };
        let [element, swizzle] = [self.element_bytes, self.swizzle_bytes].map(u64::from);
        let axes = self.sizes.len() as u64;
        numbers[0] = MAGIC;
        numbers[1] = packed(OF_HEAD, [element, axes, swizzle, kind]);
        numbers[2] = self.base;
        numbers[SIZES_AT..][..self.sizes.len()].copy_from_slice(&self.sizes);
        numbers[STRIDES_AT..][..self.strides_bytes.len()].copy_from_slice(&self.strides_bytes);
        match &self.copied {
            Copied::Box(sides) => {
                let mut all = [0; OF_SIDES.len()];
                all.iter_mut().zip(sides).for_each(|(to, &side)| *to = u64::from(side));
                numbers[COPIED_AT] = packed(OF_SIDES, all);
            }
            &Copied::Windows { channels, count, first, last, steps } => {
                let [channels, count] = [channels, count].map(u64::from);
                let [columns, rows] = steps.map(u64::from);
                numbers[COPIED_AT] = packed(OF_WINDOW, [channels, count, columns, rows]);
                let corners = [first[0], first[1], last[0], last[1]];
                numbers[COPIED_AT + 1] = packed(OF_CORNERS, corners.map(|corner| corner as u64));
            }
        }
        let mut bytes = [0; SIZE_BYTES];
        for (to, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// What [`TensorMap::encode`] described; `None` for bytes that it did not make.
    pub(crate) fn decode(bytes: &[u8; SIZE_BYTES]) -> Option<Self> {
        let mut numbers = Numbers::default();
        for (number, from) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
            *number = u64::from_le_bytes(from.try_into().ok()?);
        }
        let [element_bytes, axes, swizzle_bytes, kind] = unpacked(numbers[1], OF_HEAD);
        let axes = axes as usize;
        if numbers[0] != MAGIC || !(1..=MAX_AXES).contains(&axes) {
            return None;
        }
        let copied = match kind {
            OF_BOX => {
                let sides = unpacked(numbers[COPIED_AT], OF_SIDES);
                Copied::Box(sides[..axes].iter().map(|&side| side as u32).collect())
            }
            OF_WINDOWS if axes == IMAGE_AXES => {
                let [channels, count, columns, rows] = unpacked(numbers[COPIED_AT], OF_WINDOW);
                let corners = unpacked(numbers[COPIED_AT + 1], OF_CORNERS);
                let [left, top, right, bottom] = corners.map(|corner| i32::from(corner as i16));
                Copied::Windows {
                    channels: channels as u32,
                    count: count as u32,
                    first: [left, top],
                    last: [right, bottom],
                    steps: [columns as u32, rows as u32],
                }
            }
            _ => return None,
        };
        let map = Self {
            base: numbers[2],
            element_bytes: element_bytes as u32,
            sizes: numbers[SIZES_AT..][..axes].to_vec(),
            strides_bytes: numbers[STRIDES_AT..][..axes - 1].to_vec(),
            copied,
            swizzle_bytes: swizzle_bytes as u32,
        };
        // What is not said by any part of it is zero.
        (map.encode() == *bytes).then_some(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxes() -> TensorMap {
        TensorMap {
            base: 0x7fff_1234_5670,
            element_bytes: 2,
            sizes: vec![1 << 32, 3, 5, 7, 9],
            strides_bytes: vec![1 << 33, 32, 48, (1 << 40) - 16],
            copied: Copied::Box(vec![64, 256, 1, 2, 3]),
            swizzle_bytes: 128,
        }
    }

    fn windows() -> TensorMap {
        TensorMap {
            base: 16,
            element_bytes: 4,
            sizes: vec![64, 56, 57, 8],
            strides_bytes: vec![256, 14336, 1 << 20],
            copied: Copied::Windows {
                channels: 256,
                count: 1024,
                first: [-128, 127],
                last: [-1, -128],
                steps: [8, 1],
            },
            swizzle_bytes: 0,
        }
    }

    #[test]
    fn what_is_described_is_read_back() {
        let one_axis = TensorMap {
            sizes: vec![100],
            strides_bytes: Vec::new(),
            copied: Copied::Box(vec![16]),
            ..boxes()
        };
        for map in [boxes(), windows(), one_axis] {
            assert_eq!(TensorMap::decode(&map.encode()), Some(map));
        }
    }

    #[test]
    fn other_bytes_are_no_description() {
        assert_eq!(TensorMap::decode(&[0; SIZE_BYTES]), None);
        assert_eq!(TensorMap::decode(&[0xFF; SIZE_BYTES]), None);
        for (at, bits) in [(0, 1), (9, 0x40), (15, 1), (127, 0x80), (12, 2)] {
            let mut bytes = windows().encode();
            bytes[at] ^= bits;
            assert_eq!(TensorMap::decode(&bytes), None, "byte {at}");
        }
    }
}
