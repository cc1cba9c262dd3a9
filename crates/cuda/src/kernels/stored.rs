//! Weights as they are stored on the device.

use half::{bf16, f16};

use crate::Storage;

/// Numbers in a storage type of floating-point numbers. A finite number that the type cannot hold becomes the largest
/// that it can.
pub(crate) fn stored(numbers: impl Iterator<Item = f32>, storage: Storage) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.size_hint().0 * storage.size_bytes());
    match storage {
        Storage::F16 => numbers.for_each(|number| bytes.extend(as_f16(number).to_ne_bytes())),
        Storage::Bf16 => {
            numbers.for_each(|number| bytes.extend(bf16::from_f32(number).to_ne_bytes()));
        }
        _ => {
            assert_eq!(storage, Storage::F32, "weights are floating-point numbers");
            numbers.for_each(|number| bytes.extend(number.to_ne_bytes()));
        }
    }
    bytes
}

fn as_f16(number: f32) -> f16 {
    let limit = f16::MAX.to_f32();
    f16::from_f32(if number.is_finite() { number.clamp(-limit, limit) } else { number })
}

/// A matrix `rows` x `columns` given by `at(row, column)`, with rows of `stride` elements, zero past the columns.
pub(crate) fn stored_rows(
    rows: usize,
    columns: usize,
    stride: usize,
    storage: Storage,
    at: impl Fn(usize, usize) -> f32,
) -> Vec<u8> {
    let row = |row| (0..stride).map(move |column| (row, column));
    let numbers = (0..rows).flat_map(row);
    stored(
        numbers.map(|(row, column)| if column < columns { at(row, column) } else { 0.0 }),
        storage,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_past_the_range_of_f16_become_its_largest() {
        let bytes = stored([1.0f32, 1e9, -1e9, f32::INFINITY].into_iter(), Storage::F16);
        let numbers: Vec<f32> =
            bytes.chunks(2).map(|pair| f16::from_ne_bytes([pair[0], pair[1]]).to_f32()).collect();
        assert_eq!(numbers, [1.0, 65504.0, -65504.0, f32::INFINITY]);
    }

    #[test]
    fn rows_are_padded_with_zeros() {
        let bytes = stored_rows(2, 1, 2, Storage::F32, |row, _| 1.0 + row as f32);
        assert_eq!(bytemuck::pod_collect_to_vec::<u8, f32>(&bytes), [1.0, 0.0, 2.0, 0.0]);
    }
}
