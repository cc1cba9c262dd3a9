//! How a session goes about it.

use std::time::Duration;

use super::Part;
use crate::search::SearchOptions;

/// One of several equal shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 0 on.
    pub number: usize,
    /// Of how many.
    pub count: usize,
}

impl Default for Shard {
    fn default() -> Self {
        Self { number: 0, count: 1 }
    }
}

impl Shard {
    /// Those of a list that fall to the shard.
    pub fn of<T>(self, list: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
        list.into_iter().skip(self.number).step_by(self.count.max(1))
    }
}

/// How many candidates are timed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sharing {
    /// As many as the device has disjoint partitions, at most this many; each on the least partition that tells.
    AtMost(usize),
    /// As many as the device has disjoint partitions.
    #[default]
    All,
    /// One at a time, on a partition of the size that is tuned for.
    OneAtATime,
}

/// How much is compiled at most: operators of the same kind share most of it, so that a few things for each go far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompileBudget {
    /// For whatever there is.
    pub base: usize,
    /// For each operator besides.
    pub per_operator: f64,
}

impl Default for CompileBudget {
    fn default() -> Self {
        Self { base: 16, per_operator: 1.25 }
    }
}

impl CompileBudget {
    /// What may be compiled for so many operators.
    pub fn of(self, operators: usize) -> usize {
        self.base + (self.per_operator * operators as f64) as usize
    }
}

/// What bounds a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuneOptions {
    /// Which part of a session is done.
    pub part: Part,
    /// Which of the device's partitions are used: every so manieth from a first one on, where several processes share it.
    pub shard: Shard,
    /// How each operator's candidates are searched.
    pub search: SearchOptions,
    /// How many candidates are timed at once.
    pub sharing: Sharing,
    /// For how long each candidate is timed.
    pub effort: Duration,
    /// For how long those are timed that are left in the end, by themselves.
    pub final_effort: Duration,
    /// How many things are compiled at most for so many operators.
    pub compiles: CompileBudget,
    /// Threads that compile; all cores where it is `None`.
    pub compile_threads: Option<usize>,
    /// After how long no further candidate is begun.
    pub budget: Option<Duration>,
    /// The share of the untuned candidate's time that another one must save to be chosen.
    pub least_gain: f64,
}

impl Default for TuneOptions {
    fn default() -> Self {
        Self {
            part: Part::All,
            shard: Shard::default(),
            search: SearchOptions::default(),
            sharing: Sharing::All,
            effort: Duration::from_millis(30),
            final_effort: Duration::from_millis(12),
            compiles: CompileBudget::default(),
            compile_threads: None,
            budget: None,
            least_gain: 0.02,
        }
    }
}
