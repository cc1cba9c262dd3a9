//! Mean and variance, computed in two passes so that large means do not swallow small variances.

/// The mean, and one over the standard deviation after adding `epsilon` to the variance.
pub(super) fn mean_and_inverse<I: Iterator<Item = f64>>(
    elements: impl Fn() -> I,
    epsilon: f32,
) -> (f64, f64) {
    let (count, sum) = elements().fold((0usize, 0.0), |(count, sum), x| (count + 1, sum + x));
    let mean = sum / count as f64;
    let variance = elements().map(|x| (x - mean).powi(2)).sum::<f64>() / count as f64;
    (mean, 1.0 / (variance + f64::from(epsilon)).sqrt())
}
