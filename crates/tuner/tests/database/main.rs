//! The tuning database as its users see it.

mod choices;
mod damage;
mod exchange;
mod merging;
mod opening;
mod places;
mod processes;
mod pruning;
mod sample;
mod schedules;
mod summaries;
mod trials;
mod upgrading;
mod worlds;
