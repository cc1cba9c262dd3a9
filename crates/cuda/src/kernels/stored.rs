//! Weights as they are stored on the device.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::Storage;

/// How many numbers are converted at once.
const CHUNK: usize = 4096;

/// Numbers in a storage type of floating-point numbers. A finite number that the type cannot hold becomes the largest
/// that it can.
pub(crate) fn stored(mut numbers: impl Iterator<Item = f32>, storage: Storage) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.size_hint().0 * storage.size_bytes());
    let mut chunk = Vec::with_capacity(CHUNK);
    loop {
        chunk.clear();
        chunk.extend(numbers.by_ref().take(CHUNK));
        if chunk.is_empty() {
            return bytes;
        }
        store(&mut chunk, storage, &mut bytes);
    }
}

/// A matrix whose rows `fill` writes into as many zeros as a row has, to the same places of each.
pub(crate) fn stored_rows(
    rows: usize,
    stride: usize,
    storage: Storage,
    mut fill: impl FnMut(usize, &mut [f32]),
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows * stride * storage.size_bytes());
    let mut row = vec![0.0; stride];
    for number in 0..rows {
        fill(number, &mut row);
        store(&mut row, storage, &mut bytes);
    }
    bytes
}

/// Adds numbers to `bytes`; they may change on the way.
fn store(numbers: &mut [f32], storage: Storage, bytes: &mut Vec<u8>) {
    match storage {
        Storage::F16 => {
            let limit = f16::MAX.to_f32();
            for number in &mut *numbers {
                *number = if number.is_finite() { number.clamp(-limit, limit) } else { *number };
            }
            let mut halves = vec![f16::ZERO; numbers.len()];
            halves.convert_from_f32_slice(numbers);
            bytes.extend_from_slice(bytemuck::cast_slice(&halves));
        }
        Storage::Bf16 => {
            let mut halves = vec![bf16::ZERO; numbers.len()];
            halves.convert_from_f32_slice(numbers);
            bytes.extend_from_slice(bytemuck::cast_slice(&halves));
        }
        _ => {
            assert_eq!(storage, Storage::F32, "weights are floating-point numbers");
            bytes.extend_from_slice(bytemuck::cast_slice(numbers));
        }
    }
}

/// A matrix of `rows` x `columns`, column by column.
pub(crate) fn transposed(matrix: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    // Squares whose rows and columns both stay in the cache.
    const SIDE: usize = 32;
    let mut turned = vec![0.0; matrix.len()];
    for first_row in (0..rows).step_by(SIDE) {
        for first_column in (0..columns).step_by(SIDE) {
            for row in first_row..rows.min(first_row + SIDE) {
                for column in first_column..columns.min(first_column + SIDE) {
                    turned[column * rows + row] = matrix[row * columns + column];
                }
            }
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_past_the_range_of_f16_become_its_largest() {
        let bytes = stored([1.0f32, 1e9, -1e9, f32::INFINITY].into_iter(), Storage::F16);
        let numbers: Vec<f32> =
            bytemuck::pod_collect_to_vec::<u8, f16>(&bytes).into_iter().map(f16::to_f32).collect();
        assert_eq!(numbers, [1.0, 65504.0, -65504.0, f32::INFINITY]);
    }

    #[test]
    fn every_number_is_rounded_as_by_itself() {
        let numbers = || (0..2 * CHUNK + 3).map(|number| (number as f32 * 0.37).sin() * 1e-3);
        let halves: Vec<f16> = bytemuck::pod_collect_to_vec(&stored(numbers(), Storage::F16));
        assert!(halves.into_iter().eq(numbers().map(f16::from_f32)));
        let halves: Vec<bf16> = bytemuck::pod_collect_to_vec(&stored(numbers(), Storage::Bf16));
        assert!(halves.into_iter().eq(numbers().map(bf16::from_f32)));
    }

    #[test]
    fn rows_are_padded_with_zeros() {
        let bytes = stored_rows(2, 2, Storage::F32, |number, row| row[0] = 1.0 + number as f32);
        assert_eq!(bytemuck::pod_collect_to_vec::<u8, f32>(&bytes), [1.0, 0.0, 2.0, 0.0]);
    }

    #[test]
    fn matrices_are_turned() {
        let (rows, columns) = (45, 70);
        let matrix: Vec<f32> = (0..rows * columns).map(|number| number as f32).collect();
        let turned = transposed(&matrix, rows, columns);
        let at = |row: usize, column: usize| turned[column * rows + row];
        assert_eq!((at(0, 1), at(44, 69), at(33, 40)), (1.0, 3149.0, 2350.0));
        assert_eq!(transposed(&turned, columns, rows), matrix);
    }
}
