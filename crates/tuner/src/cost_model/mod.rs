//! What a candidate will take, learned from what others took: gradient-boosted regression trees over features.

mod bins;
mod histogram;
mod model;
mod rows;
mod tree;

pub use model::CostModel;
pub use rows::{MAX_FEATURES, MAX_ROWS, RowError, TrainingRows};

#[cfg(test)]
mod tests;
