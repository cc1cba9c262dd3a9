//! The sum of products that the references of recurrent layers and attention are made of.

/// The sum of products, in several accumulators so that it need not wait for each addition.
pub(super) fn dot(left: &[f64], right: &[f64]) -> f64 {
    let (left_blocks, left_rest) = left.as_chunks::<8>();
    let (right_blocks, right_rest) = right.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (left, right) in left_blocks.iter().zip(right_blocks) {
        for lane in 0..8 {
            sums[lane] += left[lane] * right[lane];
        }
    }
    let rest: f64 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    sums.iter().sum::<f64>() + rest
}
