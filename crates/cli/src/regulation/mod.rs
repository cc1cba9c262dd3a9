//! Regulation of mixes that are named on the command line: reading their models, and what became of them for machines.

mod circumstances;
mod outcome;
mod subject;

pub(crate) use circumstances::Circumstances;
pub(crate) use outcome::outcome_json;
pub(crate) use subject::{Budget, MixedModel, Place, Subject};
