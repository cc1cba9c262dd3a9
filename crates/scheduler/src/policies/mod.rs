//! The policies, one short file each.

mod time_sharing;

pub use time_sharing::TimeSharing;
