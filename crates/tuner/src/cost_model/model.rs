//! The sum of trees, each of which corrects those before it.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use super::TrainingRows;
use super::bins::Bins;
use super::tree::{Soil, Tree};

/// How many trees there are at most.
const MAX_TREES: usize = 120;

/// Over how many trees the error on rows they did not see must have fallen for another one to be grown.
const EARLY_STOP: usize = 20;

/// How much of its correction each tree applies.
const SHRINKAGE: f32 = 0.12;

/// The shares of rows and of features that each tree sees.
const ROW_SHARE: f32 = 0.7;
const FEATURE_SHARE: f32 = 0.7;

/// Predicts the natural logarithm of a candidate's time relative to that of its operator's reference.
#[derive(Clone, Debug, PartialEq)]
pub struct CostModel {
    width: usize,
    rows: usize,
    mean: f32,
    trees: Vec<Tree>,
}

impl CostModel {
    /// Learns from rows; the same rows and seed give the same model. `None` where there are no rows. With another seed each
    /// time, a candidate that one model overlooks is not overlooked by the next.
    pub fn fit(rows: &TrainingRows, seed: u64) -> Option<Self> {
        if rows.is_empty() {
            return None;
        }
        let targets = rows.targets();
        let mean =
            (targets.iter().copied().map(f64::from).sum::<f64>() / targets.len() as f64) as f32;
        let mut model = Self { width: rows.width(), rows: rows.len(), mean, trees: Vec::new() };
        let bins = Bins::new(rows);
        let mut features = bins.useful_features();
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        let mut residuals: Vec<f32> = targets.iter().map(|target| target - mean).collect();
        let mut random = SmallRng::seed_from_u64(seed);
        let seen = share(rows.len(), ROW_SHARE);
        let used = share(features.len(), FEATURE_SHARE);
        let mut improvements: Vec<f32> = Vec::new();
        while model.trees.len() < MAX_TREES && !features.is_empty() {
            order.shuffle(&mut random);
            features.shuffle(&mut random);
            let (grown_on, held_out) = order.split_at_mut(seen);
            let soil = Soil {
                bins: &bins,
                residuals: &residuals,
                features: &features[..used],
                shrinkage: SHRINKAGE,
            };
            let tree = Tree::grow(&soil, grown_on);
            let mut improvement = 0.0;
            let corrections: Vec<f32> = rows.iter().map(|row| tree.value(row)).collect();
            for &row in held_out.iter() {
                let (before, correction) = (residuals[row as usize], corrections[row as usize]);
                improvement += before * before - (before - correction) * (before - correction);
            }
            for (residual, correction) in residuals.iter_mut().zip(&corrections) {
                *residual -= correction;
            }
            model.trees.push(tree);
            improvements.push(improvement);
            let recent = improvements.len().saturating_sub(EARLY_STOP);
            if recent > 0 && improvements[recent..].iter().sum::<f32>() <= 0.0 {
                break;
            }
        }
        Some(model)
    }

    /// How many features it takes.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many rows it has learned from.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// What a candidate with these features will take.
    ///
    /// # Panics
    ///
    /// Where there are other than [`width`](Self::width) features.
    pub fn predict(&self, features: &[f32]) -> f32 {
        assert_eq!(features.len(), self.width, "the model was learned from other features");
        self.mean + self.trees.iter().map(|tree| tree.value(features)).sum::<f32>()
    }
}

/// A share of so many, and at least one.
fn share(count: usize, share: f32) -> usize {
    ((count as f32 * share).round() as usize).clamp(count.min(1), count)
}
