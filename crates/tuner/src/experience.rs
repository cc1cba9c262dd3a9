//! What a database knows of a platform, as rows for a cost model.

use std::collections::HashMap;
use std::time::Duration;

use weft_device::Platform;

use crate::cost_model::TrainingRows;
use crate::database::{Database, DatabaseError, MeasuredTrial};

/// Everything that was measured on a platform; each time relative to the median of its operator on partitions of its size.
pub fn experience(database: &Database, platform: &Platform) -> Result<TrainingRows, DatabaseError> {
    let trials = database.measured_trials(platform)?;
    let mut times: HashMap<_, Vec<Duration>> = HashMap::new();
    let group =
        |trial: &MeasuredTrial| (trial.operator.clone(), trial.partition_size, trial.method);
    for trial in &trials {
        times.entry(group(trial)).or_default().push(trial.time);
    }
    let medians: HashMap<_, f64> = times
        .into_iter()
        .map(|(key, mut times)| {
            times.sort_unstable();
            (key, times[times.len() / 2].as_secs_f64())
        })
        .collect();
    let mut rows = TrainingRows::default();
    for trial in &trials {
        let relative = trial.time.as_secs_f64() / medians[&group(trial)];
        // What another version of the features left behind, or what is too much, teaches nothing.
        let _ = rows.push(&trial.features, relative.ln() as f32);
    }
    Ok(rows)
}
