//! The residuals of a node's rows, summed up by the bins of each feature.

use super::bins::{BINS, Bins};

/// A regression tree splits where two sums are far apart, and these sums are all it has to know of its rows.
pub(super) struct Histogram {
    /// For each feature in use and each bin: the sum of residuals, and the number of rows.
    columns: Vec<[(f32, f32); BINS]>,
}

/// The best way to part a node.
#[derive(Clone, Copy)]
pub(super) struct Split {
    pub(super) feature: usize,
    /// The last bin below.
    pub(super) bin: usize,
}

/// What a leaf that holds these rows explains of the squared residuals.
fn explained(sum: f32, count: f32) -> f32 {
    sum * sum / (count + super::tree::REGULARISATION)
}

impl Histogram {
    pub(super) fn new(bins: &Bins, features: &[usize], residuals: &[f32], rows: &[u32]) -> Self {
        let of_rows: Vec<f32> = rows.iter().map(|&row| residuals[row as usize]).collect();
        let columns = features.iter().map(|&feature| {
            let column = bins.column(feature);
            let mut sums = [(0.0, 0.0); BINS];
            for (&row, residual) in rows.iter().zip(&of_rows) {
                let (sum, count) = &mut sums[usize::from(column[row as usize]) % BINS];
                *sum += residual;
                *count += 1.0;
            }
            sums
        });
        Self { columns: columns.collect() }
    }

    /// What is left when the rows of a part are taken away: cheaper than to count them.
    pub(super) fn without(mut self, part: &Self) -> Self {
        let bins = self.columns.as_flattened_mut().iter_mut();
        for ((sum, count), (part_sum, part_count)) in bins.zip(part.columns.as_flattened()) {
            *sum -= part_sum;
            *count -= part_count;
        }
        self
    }

    /// Where parting the rows explains the most, if it explains anything.
    pub(super) fn best_split(&self, bins: &Bins, features: &[usize]) -> Option<Split> {
        let add = |(sum, count): (f32, f32), bin: &(f32, f32)| (sum + bin.0, count + bin.1);
        let (total, rows) = self.columns.first()?.iter().fold((0.0, 0.0), add);
        let mut best = None;
        let mut most = explained(total, rows) + f32::EPSILON;
        for (&feature, column) in features.iter().zip(&self.columns) {
            let (mut sum, mut count) = (0.0, 0.0);
            for (bin, &(bin_sum, bin_count)) in column[..bins.count(feature)].iter().enumerate() {
                sum += bin_sum;
                count += bin_count;
                if bin_count == 0.0 {
                    continue;
                }
                if count == rows {
                    break;
                }
                let both = explained(sum, count) + explained(total - sum, rows - count);
                if both > most {
                    (best, most) = (Some(Split { feature, bin }), both);
                }
            }
        }
        best
    }
}
