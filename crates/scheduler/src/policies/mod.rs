//! The policies, one short file each.

mod equal_partitions;
mod time_sharing;

pub use equal_partitions::EqualPartitions;
pub use time_sharing::TimeSharing;
