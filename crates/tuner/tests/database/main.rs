//! The tuning database as its users see it.

mod choices;
mod opening;
mod processes;
mod sample;
mod trials;
