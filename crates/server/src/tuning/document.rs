//! What is asked of tuning beside what is served, and what it tells of itself.

use serde::{Deserialize, Serialize};

/// What is to be tuned, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TuningRequest {
    /// Names of models that are served; all where there are none.
    pub models: Vec<String>,
    /// Batch sizes; where there are none, those that each model is prepared at.
    pub batches: Vec<usize>,
    /// No further trial is begun after so many seconds.
    pub budget_s: Option<f64>,
    /// Candidates of each operator that are tried at most.
    pub trials: Option<usize>,
    /// For how many milliseconds each candidate is timed; less where objectives leave no room for so much.
    pub effort_ms: Option<f64>,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TuningState {
    /// There was none.
    #[default]
    Idle,
    /// It is under way.
    Running,
    /// It has done all it could.
    Done,
    /// Somebody has ended it; what was found until then is kept and used.
    Stopped,
    /// It could not go on; what was found until then is kept.
    Failed,
}

/// The session that is under way, or else the last one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TuningDocument {
    /// Where it stands.
    pub state: TuningState,
    /// Why it could not go on.
    pub error: Option<String>,
    /// The models that are tuned.
    pub models: Vec<String>,
    /// The sizes of partitions that they are tuned for, in cores or SMs, one after another.
    pub sizes: Vec<usize>,
    /// For how many milliseconds each candidate is timed.
    pub effort_ms: f64,
    /// The file that has what is found.
    pub database: String,
    /// How far it is with the size at hand.
    pub progress: Option<TuningProgress>,
    /// What was found for each size that is done.
    pub reports: Vec<TunedSize>,
}

/// How far a session is with one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TuningProgress {
    /// The size.
    pub size: usize,
    /// What it is at: trials or finals.
    pub phase: String,
    /// Trials of the phase that are done.
    pub done: usize,
    /// Trials of the phase that are expected in all.
    pub expected: usize,
    /// What the best candidates so far take together.
    pub best_us: f64,
    /// What the untuned ones take.
    pub untuned_us: f64,
}

/// What was found for partitions of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TunedSize {
    /// In cores or SMs.
    pub partition_size: usize,
    /// By operator.
    pub operators: Vec<TunedOperator>,
    /// Candidates that were tried, finals not counted.
    pub trials: usize,
    /// Of these, those that were tried again because something interfered.
    pub repeated: usize,
    /// Those with wrong results.
    pub wrong: usize,
    /// Those that could not be compiled or run.
    pub failed: usize,
    /// How many were under way at once.
    pub benches: usize,
    /// How long candidates were tried.
    pub screening_s: f64,
    /// How long those that were left were tried again.
    pub finals_s: f64,
    /// All of it.
    pub total_s: f64,
    /// What compiling took of the cores.
    pub compile_core_s: f64,
}

/// What was found for one operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TunedOperator {
    /// What is computed.
    pub operator: String,
    /// What it is computed at.
    pub precision: String,
    /// How often the models compute it.
    pub occurrences: f64,
    /// How many candidates there are.
    pub candidates: usize,
    /// What was chosen; none where the session ended before, as with all that follows.
    pub kernel: Option<String>,
    /// What it takes.
    pub time_us: Option<f64>,
    /// What the untuned candidate takes.
    pub untuned_time_us: Option<f64>,
    /// Candidates that were tried.
    pub trials: Option<usize>,
}
