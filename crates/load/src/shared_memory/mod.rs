//! Tensors in memory that generator and server share, so that messages carry their places alone.

mod region;
mod registration;
mod share;
mod slots;

pub(crate) use registration::Registration;
pub(crate) use share::share;
pub(crate) use slots::OutputSlots;

/// The most requests under way that have room for their outputs. More connections than that are not opened.
pub const MAX_SLOTS: usize = 1024;

/// What servers call it among the extensions that they offer.
const EXTENSION: &str = "system_shared_memory";

/// Where tensors begin: at multiples of this.
const ALIGNMENT_BYTES: usize = 64;
