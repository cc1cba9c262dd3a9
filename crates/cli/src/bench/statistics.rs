//! Statistics of repeated measurements.

/// The value below which a share of the samples lies, interpolated between neighbours; NaN without samples.
pub(super) fn quantile(samples: &[f64], share: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// The middle sample.
pub(super) fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

/// The sample above a quarter of all: what else runs on a machine makes some samples longer, and none shorter.
pub(crate) fn lower_quartile(samples: &[f64]) -> f64 {
    quantile(samples, 0.25)
}

/// The n-th root of the product; NaN without samples.
pub(crate) fn geometric_mean(samples: &[f64]) -> f64 {
    (samples.iter().map(|sample| sample.ln()).sum::<f64>() / samples.len() as f64).exp()
}

/// How far two lists agree in the order of their values: 1 where they do, -1 where one is the reverse of the other, NaN
/// where one of them has no order.
pub(super) fn spearman(one: &[f64], other: &[f64]) -> f64 {
    let (one, other) = (ranks(one), ranks(other));
    let mean = (one.len() as f64 - 1.0) / 2.0;
    let product =
        |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    product(&one, &other) / (product(&one, &one) * product(&other, &other)).sqrt()
}

/// The place of each value among all, from 0; equal ones share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|&&other| other < value).count() as f64;
    let equal = |value: f64| values.iter().filter(|&&other| other == value).count() as f64;
    values.iter().map(|&value| below(value) + (equal(value) - 1.0) / 2.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let samples = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&samples, 0.0), 1.0);
        assert_eq!(median(&samples), 2.5);
        assert_eq!(quantile(&samples, 1.0), 4.0);
        assert!((quantile(&samples, 0.9) - 3.7).abs() < 1e-12);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn order_is_all_that_ranks_see() {
        let values = [3.0, 1.0, 2.0, 9.0];
        let squares: Vec<f64> = values.iter().map(|value| value * value).collect();
        assert!((spearman(&values, &squares) - 1.0).abs() < 1e-12);
        let negative: Vec<f64> = values.iter().map(|value| -value).collect();
        assert!((spearman(&values, &negative) + 1.0).abs() < 1e-12);
        assert_eq!(ranks(&[5.0, 5.0, 1.0]), [1.5, 1.5, 0.0]);
        assert!(spearman(&[1.0, 1.0], &[1.0, 2.0]).is_nan());
    }

    #[test]
    fn the_geometric_mean_of_a_ratio_and_its_inverse_is_one() {
        assert!((geometric_mean(&[4.0, 0.25]) - 1.0).abs() < 1e-12);
        assert!((geometric_mean(&[2.0, 8.0]) - 4.0).abs() < 1e-12);
    }
}
