//! What a session tells of itself, as whoever watches it is shown and as it is written for machines.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::session::{Outcome, Phase, Progress, Task};

/// How far a session is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgressReport {
    /// The size that is tuned for, in cores or SMs.
    pub size: usize,
    /// What it is at: trials or finals.
    pub phase: String,
    /// Trials or operators that are done.
    pub done: usize,
    /// How many of them are expected in all.
    pub expected: usize,
    /// What the best candidates so far take together.
    pub best_us: f64,
    /// What the untuned ones take.
    pub untuned_us: f64,
}

impl ProgressReport {
    /// Of a session for partitions of a size.
    pub fn of(size: usize, progress: &Progress) -> Self {
        let phase = match progress.phase {
            Phase::Screening => "trials",
            Phase::Finals => "finals",
        };
        Self {
            size,
            phase: phase.to_string(),
            done: progress.done,
            expected: progress.expected,
            best_us: us(progress.best_time),
            untuned_us: us(progress.untuned_time),
        }
    }
}

/// What was found for partitions of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeReport {
    /// In cores or SMs.
    pub partition_size: usize,
    /// By operator.
    pub operators: Vec<OperatorReport>,
    /// The models with what was chosen; none where they were not compared.
    pub models: Vec<ModelReport>,
    /// Candidates that were tried, finals not counted.
    pub trials: usize,
    /// Of these, those that were tried again because something interfered.
    pub repeated: usize,
    /// Those with wrong results.
    pub wrong: usize,
    /// Those that could not be compiled or run.
    pub failed: usize,
    /// How many candidates were timed at once.
    pub benches: usize,
    /// Until the first trial, where that was looked at.
    pub prepare_s: f64,
    /// Candidates were tried side by side.
    pub screening_s: f64,
    /// Those that could be the fastest were tried again.
    pub finals_s: f64,
    /// Whole models were compared.
    pub check_s: f64,
    /// From the first trial to the end.
    pub total_s: f64,
    /// What compiling took of the cores.
    pub compile_core_s: f64,
}

impl SizeReport {
    /// What came of a session over these tasks.
    pub fn of(size: usize, tasks: &[Task], outcome: &Outcome) -> Self {
        let operators = tasks.iter().zip(&outcome.choices).map(|(task, choice)| OperatorReport {
            operator: task.operator.key().operator.clone(),
            precision: task.operator.key().precision.clone(),
            occurrences: task.occurrences,
            candidates: task.operator.candidates().len(),
            kernel: choice.map(|it| task.operator.candidates()[it.candidate].name.clone()),
            time_us: choice.map(|it| us(it.time)),
            untuned_time_us: choice.map(|it| us(it.untuned_time)),
            trials: choice.map(|it| it.trials),
        });
        let statistics = &outcome.statistics;
        Self {
            partition_size: size,
            operators: operators.collect(),
            trials: statistics.trials,
            repeated: statistics.repeated,
            wrong: statistics.wrong,
            failed: statistics.failed,
            benches: statistics.benches,
            screening_s: statistics.screening_time.as_secs_f64(),
            finals_s: (statistics.total_time - statistics.screening_time).as_secs_f64(),
            total_s: statistics.total_time.as_secs_f64(),
            compile_core_s: statistics.compile_time.as_secs_f64(),
            ..Self::default()
        }
    }
}

/// What a model takes, at one batch size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelReport {
    /// As it was named.
    pub model: String,
    /// The batch size.
    pub batch: usize,
    /// What it takes untuned.
    pub untuned_us: f64,
    /// What it takes with what was chosen.
    pub tuned_us: f64,
}

/// What was found for one operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperatorReport {
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

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
