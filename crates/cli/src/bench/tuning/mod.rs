//! What tuning is worth, how long it takes, and how far its measurements can be trusted.

pub(super) mod gain;
pub(super) mod grid;
mod heat_map;
pub(super) mod sharing;
pub(super) mod trust;

use weft_tuner::session::TuneOptions;

/// Milliseconds for which `weft tune` times each candidate.
fn default_effort_ms() -> f64 {
    TuneOptions::default().effort.as_secs_f64() * 1e3
}
