//! The middle and the width of a few measurements.

/// A quantile of values, by interpolation; of nothing, not a number.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// The median.
pub(super) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The first quartile.
pub(super) fn lower_quartile(values: &[f64]) -> f64 {
    quantile(values, 0.25)
}

/// From the first to the third quartile, relative to the median.
pub(super) fn spread(values: &[f64]) -> f64 {
    (quantile(values, 0.75) - quantile(values, 0.25)) / median(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_values() {
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(spread(&[1.0, 2.0, 3.0, 4.0, 5.0]), 2.0 / 3.0);
        assert!(median(&[]).is_nan());
    }
}
