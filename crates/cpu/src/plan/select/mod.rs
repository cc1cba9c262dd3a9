//! Kernel selection: which kernel runs which node. One file per family; the first that answers is taken.

mod bound;
mod conv;
mod elementwise;
mod layout;
mod linear;
mod pooling;
mod products;
mod rows;

use super::site::{Selected, Site};
use crate::tuning::FusedOperator;

/// Every family's selector.
const SELECTORS: &[fn(&Site<'_>) -> Option<Selected>] = &[
    conv::select,
    linear::select,
    elementwise::select,
    pooling::select,
    layout::select,
    rows::select,
    products::select,
];

/// The kernel for a node, where one of the fast ones fits.
pub(super) fn select(site: &Site<'_>) -> Option<Selected> {
    SELECTORS.iter().find_map(|select| select(site))
}

/// What a node computes, where its kernel has parameters.
pub(super) fn fused_operator(site: &Site<'_>) -> Option<FusedOperator> {
    conv::fused_operator(site).or_else(|| linear::fused_operator(site))
}
