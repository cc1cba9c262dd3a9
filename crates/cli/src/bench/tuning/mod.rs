//! What tuning is worth, how long it takes, and how far its measurements can be trusted.

mod child;
pub(super) mod gain;
pub(super) mod grid;
mod heat_map;
pub(super) mod sharing;
pub(super) mod trust;
