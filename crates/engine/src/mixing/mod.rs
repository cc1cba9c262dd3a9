//! Mixes of what is served: regulated beside it, in moments in which the device has nothing else to do, and run as one launch.

mod background;
mod known_schedules;
mod memory;
mod ready_mix;

pub use background::MixOutcome;
pub use known_schedules::{FoundSchedule, KnownSchedules, NoSchedules};

pub(crate) use background::{Mixer, WantedMix};
pub(crate) use memory::MixMemory;
pub(crate) use ready_mix::ReadyMix;
