//! One model's profile: a table of measured latencies, monotone in both directions.

use crate::time::Span;

/// One measured execution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfilePoint {
    /// Items run together.
    pub batch: u32,
    /// Units of the partition.
    pub units: u32,
    /// The median latency alone.
    pub latency: Span,
    /// Bytes that pass through the device's memory in one execution.
    pub dram_bytes: f64,
}

/// A profile that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ProfileError {
    #[error("has no points")]
    Empty,
    #[error(
        "has no point at batch {batch} on {units} units, though it has that batch and that number of units elsewhere"
    )]
    Hole { batch: u32, units: u32 },
    #[error("has two points at batch {batch} on {units} units")]
    Twice { batch: u32, units: u32 },
    #[error("has a batch, a number of units or a latency of zero")]
    Zero,
}

/// How long a model takes: every measured batch size on every measured number of units.
///
/// Where measurement noise makes a larger batch faster, or more units slower, the table is smoothed: more work never takes
/// less time, and more units never take more.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    batches: Vec<u32>,
    units: Vec<u32>,
    /// By batch, then by units, in nanoseconds.
    latency_ns: Vec<f64>,
    /// Likewise.
    dram_bytes: Vec<f64>,
    /// Memory of weights and activations at the largest batch.
    pub memory_bytes: u64,
}

impl Profile {
    /// A profile of points, which must form a full grid.
    pub fn new(points: &[ProfilePoint], memory_bytes: u64) -> Result<Self, ProfileError> {
        if points.is_empty() {
            return Err(ProfileError::Empty);
        }
        let is_zero = |point: &ProfilePoint| {
            point.batch == 0 || point.units == 0 || point.latency == Span::ZERO
        };
        if points.iter().any(is_zero) {
            return Err(ProfileError::Zero);
        }
        let axis = |read: fn(&ProfilePoint) -> u32| {
            let mut values: Vec<u32> = points.iter().map(read).collect();
            values.sort_unstable();
            values.dedup();
            values
        };
        let (batches, units) = (axis(|point| point.batch), axis(|point| point.units));
        let mut cells: Vec<Option<&ProfilePoint>> = vec![None; batches.len() * units.len()];
        let place = |list: &[u32], value: u32| list.partition_point(|&other| other < value);
        for point in points {
            let at = place(&batches, point.batch) * units.len() + place(&units, point.units);
            if cells[at].replace(point).is_some() {
                return Err(ProfileError::Twice { batch: point.batch, units: point.units });
            }
        }
        let mut latency_ns = Vec::with_capacity(cells.len());
        let mut dram_bytes = Vec::with_capacity(cells.len());
        for (at, cell) in cells.iter().enumerate() {
            let Some(point) = cell else {
                let (batch, units) = (batches[at / units.len()], units[at % units.len()]);
                return Err(ProfileError::Hole { batch, units });
            };
            latency_ns.push(point.latency.nanos() as f64);
            dram_bytes.push(point.dram_bytes);
        }
        smooth(&mut latency_ns, batches.len(), units.len());
        Ok(Self { batches, units, latency_ns, dram_bytes, memory_bytes })
    }

    /// The batch sizes that were measured, in increasing order.
    pub fn batches(&self) -> &[u32] {
        &self.batches
    }

    /// The numbers of units that were measured, in increasing order.
    pub fn units(&self) -> &[u32] {
        &self.units
    }

    /// The latency alone of a batch on a number of units, both at least 1: as measured, or linear between the measured
    /// points (in the batch, and in the reciprocal of the units, along which work is divided). Past the largest batch it
    /// grows in proportion; below the smallest number of units likewise; more units than the most measured help no more.
    pub fn latency(&self, batch: u32, units: u32) -> Span {
        Span::from_nanos(self.interpolate(&self.latency_ns, batch, units).round() as u64)
    }

    /// Bytes that pass through the device's memory in one execution.
    pub fn dram_bytes(&self, batch: u32, units: u32) -> f64 {
        self.interpolate(&self.dram_bytes, batch, units)
    }

    fn interpolate(&self, table: &[f64], batch: u32, units: u32) -> f64 {
        let (low, high, share) = between(&self.batches, f64::from(batch));
        let at = |batch_index: usize| self.along_units(table, batch_index, units);
        let value = at(low) + (at(high) - at(low)) * share;
        let last = *self.batches.last().expect("a profile has points");
        let beyond = f64::from(batch) / f64::from(last);
        if beyond > 1.0 { value * beyond } else { value }
    }

    fn along_units(&self, table: &[f64], batch_index: usize, units: u32) -> f64 {
        let row = &table[batch_index * self.units.len()..][..self.units.len()];
        let first = self.units[0];
        if units < first {
            return row[0] * f64::from(first) / f64::from(units.max(1));
        }
        let (low, high, _) = between(&self.units, f64::from(units));
        if low == high {
            return row[low];
        }
        let reciprocal = |index: usize| 1.0 / f64::from(self.units[index]);
        let share =
            (reciprocal(low) - 1.0 / f64::from(units)) / (reciprocal(low) - reciprocal(high));
        row[low] + (row[high] - row[low]) * share
    }

    /// The same profile as if no batch larger than this had been measured.
    pub fn up_to_batch(&self, largest: u32) -> Self {
        let mut batches: Vec<u32> =
            self.batches.iter().copied().filter(|&batch| batch < largest).collect();
        let is_cut = batches.len() < self.batches.len();
        batches.extend(is_cut.then_some(largest.max(1)));
        let point = |&batch: &u32| {
            self.units.iter().map(move |&units| ProfilePoint {
                batch,
                units,
                latency: self.latency(batch, units),
                dram_bytes: self.dram_bytes(batch, units),
            })
        };
        let points: Vec<ProfilePoint> = batches.iter().flat_map(point).collect();
        Self::new(&points, self.memory_bytes).expect("a part of a grid is a grid")
    }

    /// Whether so many requests take less time fused into one launch than one after another, as these profiles say.
    pub fn is_better_fused(fused: &Self, apart: &Self, count: u32, units: u32) -> bool {
        fused.latency(count, units).nanos()
            < apart.latency(1, units).nanos().saturating_mul(count.into())
    }

    /// How long requests of a group take: fused into one launch, or one after another, whichever is faster. The
    /// memory is that of a member: what fusing takes is the group's.
    pub fn better_of(fused: &Self, apart: &Self) -> Self {
        let point = |(&batch, &units): (&u32, &u32)| {
            let (latency, dram_bytes) = match Self::is_better_fused(fused, apart, batch, units) {
                true => (fused.latency(batch, units), fused.dram_bytes(batch, units)),
                false => {
                    let nanos = apart.latency(1, units).nanos().saturating_mul(batch.into());
                    (Span::from_nanos(nanos), apart.dram_bytes(1, units) * f64::from(batch))
                }
            };
            ProfilePoint { batch, units, latency, dram_bytes }
        };
        let grid =
            fused.batches.iter().flat_map(|batch| fused.units.iter().map(move |it| (batch, it)));
        let points: Vec<ProfilePoint> = grid.map(point).collect();
        Self::new(&points, apart.memory_bytes).expect("the grid of a profile is a grid")
    }

    /// The smallest measured number of units past which the next step gains less than `threshold` (0.1 is a tenth) of the
    /// latency per doubling of the units.
    pub fn knee(&self, batch: u32, threshold: f64) -> u32 {
        for pair in self.units.windows(2) {
            let (here, next) = (self.latency(batch, pair[0]), self.latency(batch, pair[1]));
            let doublings = (f64::from(pair[1]) / f64::from(pair[0])).log2();
            let gain = 1.0 - (next.us() / here.us()).powf(1.0 / doublings);
            if gain < threshold {
                return pair[0];
            }
        }
        *self.units.last().expect("a profile has points")
    }
}

/// The places around a value in a sorted list, and how far it is from the first to the second.
fn between(list: &[u32], value: f64) -> (usize, usize, f64) {
    let high = list.partition_point(|&other| f64::from(other) < value);
    if high == 0 {
        return (0, 0, 0.0);
    }
    if high == list.len() {
        return (high - 1, high - 1, 0.0);
    }
    let (low_value, high_value) = (f64::from(list[high - 1]), f64::from(list[high]));
    (high - 1, high, (value - low_value) / (high_value - low_value))
}

/// Makes a table grow with the batch and fall with the units, moving every entry no more than its neighbours ask for.
fn smooth(table: &mut [f64], batches: usize, units: usize) {
    for row in 0..batches {
        for column in 0..units {
            let before = if row > 0 { table[(row - 1) * units + column] } else { 0.0 };
            let at = row * units + column;
            table[at] = table[at].max(before);
        }
        for column in (0..units - 1).rev() {
            let at = row * units + column;
            table[at] = table[at].max(table[at + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point(batch: u32, units: u32, us: f64) -> ProfilePoint {
        ProfilePoint { batch, units, latency: Span::from_us(us), dram_bytes: us * 1e3 }
    }

    fn profile(rows: &[(u32, u32, f64)]) -> Profile {
        let points: Vec<ProfilePoint> =
            rows.iter().map(|&(batch, units, us)| point(batch, units, us)).collect();
        Profile::new(&points, 1 << 20).unwrap()
    }

    #[test]
    fn measured_points_are_given_back_and_others_lie_between() {
        let profile = profile(&[(1, 1, 80.0), (1, 2, 50.0), (8, 1, 400.0), (8, 2, 220.0)]);
        assert_eq!(profile.latency(1, 1), Span::from_us(80.0));
        assert_eq!(profile.latency(8, 2), Span::from_us(220.0));
        assert_eq!(profile.latency(4, 1).us().round(), 217.0);
        assert_eq!(profile.latency(16, 2), Span::from_us(440.0));
        assert_eq!(profile.latency(1, 9), Span::from_us(50.0));
    }

    #[test]
    fn the_knee_is_where_more_units_stop_paying() {
        let profile = profile(&[(1, 1, 100.0), (1, 2, 52.0), (1, 4, 30.0), (1, 8, 29.0)]);
        assert_eq!(profile.knee(1, 0.1), 4);
        assert_eq!(profile.knee(1, 0.45), 2);
    }

    #[test]
    fn a_profile_can_end_at_a_smaller_batch() {
        let whole = profile(&[(1, 1, 80.0), (1, 2, 50.0), (8, 1, 400.0), (8, 2, 220.0)]);
        let cut = whole.up_to_batch(4);
        assert_eq!(cut.batches(), [1, 4]);
        for (batch, units) in [(1, 1), (2, 1), (4, 2)] {
            let distance = cut.latency(batch, units).us() - whole.latency(batch, units).us();
            assert!(distance.abs() < 0.01, "batch {batch} on {units}");
        }
        assert_eq!((whole.up_to_batch(8), whole.up_to_batch(99)), (whole.clone(), whole));
    }

    #[test]
    fn requests_of_a_group_take_the_faster_way() {
        let fused = profile(&[(1, 1, 90.0), (1, 2, 70.0), (4, 1, 330.0), (4, 2, 100.0)]);
        let apart = profile(&[(1, 1, 80.0), (1, 2, 50.0), (8, 1, 90.0), (8, 2, 60.0)]);
        let better = Profile::better_of(&fused, &apart);
        assert_eq!(better.batches(), [1, 4]);
        for (batch, units, us) in [(1, 1, 80.0), (1, 2, 50.0), (4, 1, 320.0), (4, 2, 100.0)] {
            assert_eq!(better.latency(batch, units), Span::from_us(us), "{batch} on {units}");
        }
        assert_eq!(better.dram_bytes(4, 1), 4.0 * 80e3);
        assert!(Profile::is_better_fused(&fused, &apart, 4, 2));
        assert!(!Profile::is_better_fused(&fused, &apart, 4, 1));
    }

    #[test]
    fn what_is_not_a_grid_is_refused() {
        let refused = |points: &[ProfilePoint]| Profile::new(points, 0).unwrap_err();
        assert_eq!(refused(&[]), ProfileError::Empty);
        let hole = [point(1, 1, 9.0), point(1, 2, 8.0), point(2, 1, 9.5)];
        assert_eq!(refused(&hole), ProfileError::Hole { batch: 2, units: 2 });
        let twice = [point(1, 1, 9.0), point(1, 1, 8.0)];
        assert_eq!(refused(&twice), ProfileError::Twice { batch: 1, units: 1 });
        assert_eq!(refused(&[point(0, 1, 9.0)]), ProfileError::Zero);
    }

    proptest! {
        #[test]
        fn more_work_never_takes_less_time_and_more_units_never_more(
            us in prop::collection::vec(1.0f64..1e5, 12), batch in 1u32..100, units in 1u32..40,
        ) {
            let grid = [1u32, 4, 16].into_iter().flat_map(|b| [1u32, 2, 6, 16].map(move |u| (b, u)));
            let points: Vec<ProfilePoint> =
                grid.zip(us).map(|((batch, units), us)| point(batch, units, us)).collect();
            let profile = Profile::new(&points, 0).unwrap();
            let here = profile.latency(batch, units);
            prop_assert!(profile.latency(batch + 1, units) >= here);
            prop_assert!(profile.latency(batch, units + 1) <= here);
        }
    }
}
