//! The product of two matrices in memory, which everything linear comes down to.

use super::scalar::Scalar;

/// The matrix product summed onto `sums`: `sums[m, n] += left[m, depth] * right[depth, n]`, all row-major.
pub(crate) fn accumulate_product<T: Scalar>(
    left: &[T],
    right: &[T],
    sums: &mut [T],
    depth: usize,
    width: usize,
) {
    if depth == 0 || width == 0 {
        return;
    }
    for (row, sums) in left.chunks_exact(depth).zip(sums.chunks_exact_mut(width)) {
        for (&factor, right) in row.iter().zip(right.chunks_exact(width)) {
            for (sum, &right) in sums.iter_mut().zip(right) {
                *sum = sum.multiply_add(factor, right);
            }
        }
    }
}

/// The transpose of a row-major matrix.
pub(crate) fn transposed<T: Scalar>(matrix: &[T], rows: usize, columns: usize) -> Vec<T> {
    (0..columns)
        .flat_map(|column| (0..rows).map(move |row| matrix[row * columns + column]))
        .collect()
}
