//! What is asked of tuning beside what is served, and what it tells of itself.

use serde::{Deserialize, Serialize};
use weft_tuner::report::{ProgressReport, SizeReport};

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
    pub progress: Option<ProgressReport>,
    /// What was found for each size that is done.
    pub reports: Vec<SizeReport>,
}
