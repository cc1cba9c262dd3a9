//! Finds the fastest kernels for the share of a device that a model will get.

pub mod choices;
pub mod cost_model;
pub mod database;
mod experience;
mod recorder;
pub mod report;
pub mod search;
pub mod session;
pub mod tenant;

pub use experience::experience;
pub use recorder::{Elsewhere, Recorder};
