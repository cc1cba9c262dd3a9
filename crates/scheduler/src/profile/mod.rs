//! Profiles: how long a model takes, by batch size and number of units, as measured; and what lies between.

mod read;
mod set;
mod table;
mod write;

pub use set::{ProfileSet, ProfiledDevice};
pub use table::{Profile, ProfileError, ProfilePoint};

/// Files count memory in millions of bytes.
const BYTES_PER_MB: f64 = 1e6;
/// And bandwidth in thousands of these.
const BYTES_PER_GB: f64 = 1e9;

#[cfg(test)]
mod file_tests;
