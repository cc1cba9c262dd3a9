//! What a session finds, written to a tuning database as it is found.

use std::time::Duration;

use weft_device::Platform;

use crate::database::{
    self, Claim, Database, DatabaseError, KnownTrial, Method, TaskKey, TrialRecord, unix_ms_now,
};
use crate::session::{self, Known, Task, TrialReport, TrialStage};

/// Writes down the trials and the choices of one session.
pub struct Recorder<'a> {
    database: &'a Database,
    /// In the session's order.
    keys: Vec<TaskKey>,
}

/// What is chosen for partitions of another size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// Of those partitions.
    pub size: usize,
    /// For each task a candidate, and what it takes on partitions of the session's size.
    pub chosen: Vec<Option<(usize, Duration)>>,
}

impl<'a> Recorder<'a> {
    /// A recorder for a session over these tasks, on partitions of one size of a platform.
    pub fn new(database: &'a Database, platform: &Platform, size: usize, tasks: &[Task]) -> Self {
        let key = |task: &Task| TaskKey {
            platform: platform.clone(),
            operator: task.operator.key().clone(),
            partition_size: size,
        };
        Self { database, keys: tasks.iter().map(key).collect() }
    }

    /// Tells every task what is known of its candidates, so that nothing is tried twice, and which were chosen for other
    /// sizes.
    pub fn recall(&self, tasks: &mut [Task]) -> Result<(), DatabaseError> {
        let choices = self.database.recorded_choices()?;
        for (task, key) in tasks.iter_mut().zip(&self.keys) {
            let trials = self.database.known_trials(key)?;
            let candidates = task.operator.candidates();
            let place = |name: &str| candidates.iter().position(|one| one.name == name);
            let elsewhere = choices.iter().filter(|(other, _)| key.differs_in_size_from(other));
            let mut elsewhere: Vec<usize> =
                elsewhere.filter_map(|(_, choice)| place(&choice.candidate)).collect();
            elsewhere.sort_unstable();
            elsewhere.dedup();
            let known = trials.iter().filter_map(|trial| {
                let candidate = place(&trial.candidate)?;
                match trial.is_banned() {
                    true => Some(Known { candidate, time: None }),
                    false => trial.time().map(|time| Known { candidate, time: Some(time) }),
                }
            });
            task.known = known.collect();
            task.chosen_elsewhere = elsewhere;
        }
        Ok(())
    }

    /// What is chosen for each other size of partition, the nearest first, as far as it was timed at this one.
    pub fn elsewhere(&self, tasks: &[Task]) -> Result<Vec<Elsewhere>, DatabaseError> {
        let choices = self.database.recorded_choices()?;
        let mut found: Vec<Elsewhere> = Vec::new();
        for (task, key) in self.keys.iter().enumerate() {
            let candidates = tasks[task].operator.candidates();
            let alike = choices.iter().filter(|(other, _)| key.differs_in_size_from(other));
            let mut trials = None;
            for (other, choice) in alike {
                if trials.is_none() {
                    trials = Some(self.database.known_trials(key)?);
                }
                let mut trials = trials.iter().flatten();
                let trial = trials.find(|trial| trial.candidate == choice.candidate);
                let time = trial.filter(|trial| !trial.is_banned()).and_then(KnownTrial::time);
                let candidate = candidates.iter().position(|one| one.name == choice.candidate);
                let (Some(time), Some(candidate)) = (time, candidate) else { continue };
                let place = found.iter().position(|one| one.size == other.partition_size);
                let place = place.unwrap_or_else(|| {
                    let size = other.partition_size;
                    found.push(Elsewhere { size, chosen: vec![None; tasks.len()] });
                    found.len() - 1
                });
                found[place].chosen[task] = Some((candidate, time));
            }
        }
        let size = self.keys.first().map_or(0, |key| key.partition_size) as f64;
        let distance = |one: &Elsewhere| (one.size as f64 / size).ln().abs();
        found.sort_by(|one, other| distance(one).total_cmp(&distance(other)));
        Ok(found)
    }

    /// Notes that a candidate is about to be run; `false` where it must not be.
    pub fn starting(
        &self,
        tasks: &[Task],
        task: usize,
        candidate: usize,
    ) -> Result<bool, DatabaseError> {
        let name = &tasks[task].operator.candidates()[candidate].name;
        Ok(self.database.start_trial(&self.keys[task], name)? != Claim::Banned)
    }

    /// Notes what came of a trial.
    pub fn tried(&self, tasks: &[Task], report: &TrialReport) -> Result<(), DatabaseError> {
        let description = &tasks[report.task].operator.candidates()[report.candidate];
        let method = match report.stage {
            TrialStage::Screened => Method::Screened,
            TrialStage::Alone => Method::Alone,
        };
        let record = TrialRecord::now(report.trial.clone(), method, &description.features);
        self.database.record_trial(&self.keys[report.task], &description.name, &record)
    }

    /// Notes what was chosen for a task.
    pub fn chosen(
        &self,
        tasks: &[Task],
        task: usize,
        choice: &session::Choice,
    ) -> Result<(), DatabaseError> {
        let candidates = tasks[task].operator.candidates();
        let record = database::Choice {
            candidate: candidates[choice.candidate].name.clone(),
            time: choice.time,
            untuned_candidate: candidates[0].name.clone(),
            untuned_time: choice.untuned_time,
            trials: u32::try_from(choice.trials).unwrap_or(u32::MAX),
            recorded_unix_ms: unix_ms_now(),
        };
        self.database.record_choice(&self.keys[task], &record)
    }

    /// Notes that a candidate did not end.
    pub fn hung(&self, tasks: &[Task], task: usize, candidate: usize) -> Result<(), DatabaseError> {
        let description = &tasks[task].operator.candidates()[candidate];
        let hung = database::Outcome::Hung;
        let record = TrialRecord::now(hung, Method::Screened, &description.features);
        self.database.record_trial(&self.keys[task], &description.name, &record)
    }
}
