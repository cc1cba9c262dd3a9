//! What the processes that tune tell the one that started them, one line of JSON each.

use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// How far it is.
    Progress(Progress),
    /// A size is done.
    Size(SizeReport),
}

/// How far a process is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Progress {
    /// The size that is tuned for.
    pub(super) size: usize,
    /// What it is at: trials or finals.
    pub(super) phase: String,
    pub(super) done: usize,
    pub(super) expected: usize,
    pub(super) best_us: f64,
    pub(super) untuned_us: f64,
}

/// What was found for partitions of one size.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SizeReport {
    pub(super) partition_size: usize,
    pub(super) operators: Vec<OperatorReport>,
    /// The models with what was chosen.
    pub(super) models: Vec<ModelReport>,
    pub(super) trials: usize,
    pub(super) repeated: usize,
    pub(super) wrong: usize,
    pub(super) failed: usize,
    /// How many candidates were timed at once.
    pub(super) benches: usize,
    /// From the start of the process, or the end of the size before, until the first trial.
    pub(super) prepare_s: f64,
    /// Candidates were tried side by side.
    pub(super) screening_s: f64,
    /// Those that could be the fastest were tried alone.
    pub(super) finals_s: f64,
    /// Whole models were compared.
    pub(super) check_s: f64,
    /// From the first trial until the models were compared.
    pub(super) total_s: f64,
    pub(super) compile_core_s: f64,
}

/// What a model takes, at one batch size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ModelReport {
    pub(super) model: String,
    pub(super) batch: usize,
    pub(super) untuned_us: f64,
    pub(super) tuned_us: f64,
}

/// What was found for one operator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OperatorReport {
    pub(super) operator: String,
    pub(super) precision: String,
    /// How often the models compute it.
    pub(super) occurrences: f64,
    /// How many there are to choose from.
    pub(super) candidates: usize,
    /// What was chosen; none where the session ended before.
    pub(super) kernel: Option<String>,
    pub(super) time_us: Option<f64>,
    pub(super) untuned_time_us: Option<f64>,
    pub(super) trials: Option<usize>,
}
