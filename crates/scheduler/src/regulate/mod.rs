//! Regulation: how the models of a known mix share a device so that the whole mix ends soonest.
//!
//! Each model of a mix is a sequence of steps. A schedule cuts it into segments, and gives each of them units; a segment
//! begins when the one before it of the same model has ended, and those that had its units before. Nothing else waits for
//! anything, so that a schedule can be one graph of launches whose edges are these waits.
//!
//! The other way to share a device is a lockstep: steps of different models share launches on all units.

mod lockstep;
mod mix;
mod schedule;
mod search;
mod stages;

pub use lockstep::{LockedStep, Lockstep};
pub use mix::{Form, Mix, MixError, MixModel, StepTimes};
pub use schedule::{MixSchedule, ScheduleError, Segment, Timeline};
pub use search::{RegulationSearch, Strategy};
pub use stages::{Stage, Stages};
