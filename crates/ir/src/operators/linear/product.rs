//! The product of two matrices in memory, which everything linear comes down to.

use super::scalar::Scalar;

/// Columns handled together, so that they stay in the fastest cache.
const COLUMNS: usize = 512;

/// Rows of the right matrix handled together, so that each sum is loaded once for several products.
const DEPTH: usize = 4;

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
    for start in (0..width).step_by(COLUMNS) {
        let columns = start..(start + COLUMNS).min(width);
        for first in (0..depth).step_by(DEPTH) {
            let last = (first + DEPTH).min(depth);
            let right = |row: usize| &right[row * width..][columns.clone()];
            for (row, sums) in left.chunks_exact(depth).zip(sums.chunks_exact_mut(width)) {
                let sums = &mut sums[columns.clone()];
                if let &[a, b, c, d] = &row[first..last] {
                    let [p, q, r, s] = [first, first + 1, first + 2, first + 3].map(right);
                    for ((((sum, &p), &q), &r), &s) in sums.iter_mut().zip(p).zip(q).zip(r).zip(s) {
                        let half = sum.multiply_add(a, p).multiply_add(b, q);
                        *sum = half.multiply_add(c, r).multiply_add(d, s);
                    }
                } else {
                    for (index, &factor) in row[first..last].iter().enumerate() {
                        for (sum, &element) in sums.iter_mut().zip(right(first + index)) {
                            *sum = sum.multiply_add(factor, element);
                        }
                    }
                }
            }
        }
    }
}

/// The transpose of a row-major matrix.
pub(crate) fn transposed<T: Scalar>(matrix: &[T], rows: usize, columns: usize) -> Vec<T> {
    const BLOCK: usize = 32;
    let mut turned = vec![T::default(); rows * columns];
    for first in (0..rows).step_by(BLOCK) {
        for column in 0..columns {
            for row in first..(first + BLOCK).min(rows) {
                turned[column * rows + row] = matrix[row * columns + column];
            }
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_agree_with_the_definition_at_all_block_remainders() {
        for (rows, depth, width) in [(1, 1, 1), (3, 5, 7), (2, 4, 513), (2, 11, 1025), (33, 6, 2)] {
            let left: Vec<i32> = (0..rows * depth).map(|i| (i * 7 % 11) as i32 - 5).collect();
            let right: Vec<i32> = (0..depth * width).map(|i| (i * 5 % 13) as i32 - 6).collect();
            let mut sums = vec![1; rows * width];
            accumulate_product(&left, &right, &mut sums, depth, width);
            let turned = transposed(&right, depth, width);
            for (index, &sum) in sums.iter().enumerate() {
                let (row, column) =
                    (&left[index / width * depth..], &turned[index % width * depth..]);
                let expected: i32 = (0..depth).map(|k| row[k] * column[k]).sum();
                assert_eq!(sum, expected + 1, "{rows} {depth} {width} at {index}");
            }
        }
    }
}
