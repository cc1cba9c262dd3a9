//! Which candidates of an operator to try next, and when to stop: pure decisions, repeatable from a seed.

mod code;
mod effort;
mod evolution;
mod expectation;
mod forecast;
mod learned;
mod ledger;
mod operator_search;
mod options;
mod progress;
mod space;
mod start;

pub use effort::{Effort, Proposal};
pub use expectation::{Expectation, Features};
pub use ledger::Outcome;
pub use operator_search::Search;
pub use options::{MAX_EXHAUSTIVE, SearchError, SearchOptions, Strategy};

#[cfg(test)]
mod tests;
