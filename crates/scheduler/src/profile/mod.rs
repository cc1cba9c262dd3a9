//! Profiles: how long a model takes, by batch size and number of units, as measured; and what lies between.

mod table;

pub use table::{Profile, ProfileError, ProfilePoint};
