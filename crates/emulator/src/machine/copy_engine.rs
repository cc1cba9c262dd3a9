//! What the copy engine moves between tensors and shared memory.

use super::tensor_core::swizzled;
use crate::tensor_map::{Copied, TensorMap};

/// One run of neighbouring elements of a tensor, and where it lies in what is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The address of the first element that is inside of the tensor.
    pub(super) address: u64,
    /// Where that is in what is moved.
    pub(super) offset: usize,
    pub(super) bytes: usize,
}

/// What one copy moves: so many bytes, of which those that are inside of the tensor lie in runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) bytes: usize,
    pub(super) runs: Vec<Run>,
}

/// The box at a place of a tensor.
pub(super) fn moved_box(map: &TensorMap, at: &[i64]) -> Result<Moved, String> {
    let Copied::Box(sizes) = &map.copied else {
        return Err("a description of windows is used for a box".to_string());
    };
    check_axes(map, at)?;
    let mut moved = Moved { bytes: 0, runs: Vec::new() };
    let rows: u64 = sizes[1..].iter().map(|size| u64::from(*size)).product();
    for row in 0..rows {
        let mut place = at.to_vec();
        let mut rest = row;
        for (axis, size) in sizes.iter().enumerate().skip(1) {
            place[axis] += (rest % u64::from(*size)) as i64;
            rest /= u64::from(*size);
        }
        moved.add(map, &place, sizes[0]);
    }
    Ok(moved)
}

/// Windows of images from one on, at an offset within each.
pub(super) fn moved_windows(
    map: &TensorMap,
    at: &[i64],
    offsets: [i64; 2],
) -> Result<Moved, String> {
    let Copied::Windows { channels, count, first, last, steps } = &map.copied else {
        return Err("a description of a box is used for windows".to_string());
    };
    check_axes(map, at)?;
    let mut moved = Moved { bytes: 0, runs: Vec::new() };
    let [channel, mut x, mut y, mut image] = at[..] else {
        return Err("windows are those of images with four axes".to_string());
    };
    let lower = first.map(i64::from);
    let upper: [i64; 2] =
        std::array::from_fn(|axis| map.sizes[axis + 1] as i64 - 1 + i64::from(last[axis]));
    for _ in 0..*count {
        moved.add(map, &[channel, x + offsets[0], y + offsets[1], image], *channels);
        x += i64::from(steps[0]);
        if x > upper[0] {
            x = lower[0];
            y += i64::from(steps[1]);
        }
        if y > upper[1] {
            y = lower[1];
            image += 1;
        }
    }
    Ok(moved)
}

fn check_axes(map: &TensorMap, at: &[i64]) -> Result<(), String> {
    if at.len() == map.sizes.len() {
        return Ok(());
    }
    Err(format!("a place of {} axes in a tensor of {}", at.len(), map.sizes.len()))
}

impl Moved {
    /// So many neighbouring elements from a place on.
    fn add(&mut self, map: &TensorMap, place: &[i64], count: u32) {
        let element_bytes = map.element_bytes as usize;
        let offset = self.bytes;
        self.bytes += count as usize * element_bytes;
        let outer = place[1..].iter().zip(&map.sizes[1..]);
        let is_inside = outer.clone().all(|(&at, &size)| at >= 0 && (at as u64) < size);
        let first = place[0].max(0);
        let past = (place[0] + i64::from(count)).min(map.sizes[0] as i64);
        if !is_inside || first >= past {
            return;
        }
        let row: u64 =
            place[1..].iter().zip(&map.strides_bytes).map(|(&at, stride)| at as u64 * stride).sum();
        self.runs.push(Run {
            address: map.base + row + first as u64 * element_bytes as u64,
            offset: offset + (first - place[0]) as usize * element_bytes,
            bytes: (past - first) as usize * element_bytes,
        });
    }
}

/// Where a byte of what is moved lies in shared memory, from an address on.
pub(super) fn place(map: &TensorMap, start: usize, offset: usize) -> usize {
    swizzled(start + offset, map.swizzle_bytes as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(copied: Copied) -> TensorMap {
        TensorMap {
            base: 0x1_0000,
            element_bytes: 2,
            sizes: vec![8, 4, 3, 2],
            strides_bytes: vec![16, 64, 192],
            copied,
            swizzle_bytes: 0,
        }
    }

    #[test]
    fn what_lies_outside_of_a_tensor_is_left_out() {
        let map = map(Copied::Box(vec![8, 2, 1, 1]));
        let moved = moved_box(&map, &[4, 3, 1, 0]).unwrap();
        let first = Run { address: 0x1_0000 + 8 + 3 * 16 + 64, offset: 0, bytes: 8 };
        assert_eq!(moved, Moved { bytes: 32, runs: vec![first] });
        let before = moved_box(&map, &[-2, 0, 0, 1]).unwrap();
        assert_eq!(before.runs[0], Run { address: 0x1_0000 + 192, offset: 4, bytes: 12 });
        assert!(moved_box(&map, &[0, 0]).is_err());
    }

    #[test]
    fn windows_follow_each_other_from_row_to_row_and_image_to_image() {
        // Windows of three by three, one pixel of padding: four begin in each row, three rows in each image.
        let windows =
            Copied::Windows { channels: 8, count: 7, first: [-1; 2], last: [-1; 2], steps: [1; 2] };
        let map = map(windows);
        let moved = moved_windows(&map, &[0, 2, 1, 0], [1, 1]).unwrap();
        assert_eq!(moved.bytes, 7 * 16);
        let pixel = |x: u64, y: u64, image: u64| 0x1_0000 + x * 16 + y * 64 + image * 192;
        let found: Vec<(u64, usize)> =
            moved.runs.iter().map(|run| (run.address, run.offset / 16)).collect();
        let expected =
            [(3, 2, 0), (0, 0, 1), (1, 0, 1), (2, 0, 1), (3, 0, 1), (0, 1, 1), (1, 1, 1)];
        let expected: Vec<(u64, usize)> = expected
            .iter()
            .zip(0..)
            .map(|(&(x, y, image), index)| (pixel(x, y, image), index))
            .collect();
        assert_eq!(found, expected);
        let padded = moved_windows(&map, &[0, -1, -1, 0], [0, 0]).unwrap();
        assert_eq!(padded.runs.iter().map(|run| run.offset / 16).collect::<Vec<_>>(), [5, 6]);
    }

    #[test]
    fn two_steps_of_windows() {
        let windows =
            Copied::Windows { channels: 8, count: 3, first: [0; 2], last: [-1; 2], steps: [2; 2] };
        let moved = moved_windows(&map(windows), &[0, 0, 0, 0], [0, 0]).unwrap();
        let found: Vec<u64> = moved.runs.iter().map(|run| run.address - 0x1_0000).collect();
        assert_eq!(found, [0, 32, 192]);
    }
}
