//! Who runs where and when. This crate decides and does nothing: it reads no clock, starts no thread and touches no device.

mod identity;
mod profile;
mod time;

pub use identity::ModelId;
pub use profile::{Profile, ProfileError, ProfilePoint};
pub use time::{Span, Time};
