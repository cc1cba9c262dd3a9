//! Sampling an image at a point between its elements.

/// An input position along one axis and its weight.
pub(super) type AxisTap = (usize, f64);

/// The positions in a plane that make up a point, with their weights, from those along each axis.
pub(super) fn combined(axes: &[Vec<AxisTap>], spatial: &[usize]) -> Vec<(usize, f64)> {
    let mut taps = vec![(0, 1.0)];
    for (axis, &size) in axes.iter().zip(spatial) {
        taps = taps
            .iter()
            .flat_map(|&(place, weight)| {
                axis.iter().map(move |&(along, share)| (place * size + along, weight * share))
            })
            .collect();
    }
    taps
}

/// The neighbours of a coordinate along an axis, by distance; those outside the axis are left out, and count as zero.
pub(super) fn linear_taps(coordinate: f64, size: usize) -> Vec<AxisTap> {
    let low = coordinate.floor();
    let share = coordinate - low;
    [(low, 1.0 - share), (low + 1.0, share)]
        .into_iter()
        .filter(|&(position, _)| position >= 0.0 && position < size as f64)
        .map(|(position, weight)| (position as usize, weight))
        .collect()
}
