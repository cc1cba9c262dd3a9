//! Regulation of a mix on a real device: its models are timed step by step, schedules are searched by what that predicts, and the
//! best of them are run.

mod outcome;
mod regulator;
mod subject;

pub(crate) use outcome::{Outcome, Way, outcome_json};
pub(crate) use regulator::{Budget, regulate};
pub(crate) use subject::{MixedModel, Subject};
