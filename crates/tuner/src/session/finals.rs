//! The second part of a session: those that screening could not tell apart are tried alone, on a partition of the size that
//! is tuned for.

use std::time::Duration;

use weft_device::{Bench, Trial, TunableDevice};

use super::observer::{Observer, Phase, Progress, TrialReport, TrialStage};
use super::options::TuneOptions;
use super::outcome::Choice;
use super::screening::Screened;
use super::stop::Stop;
use super::task::Task;
use super::{Assignment, TuneError};
use crate::search::Search;

/// How far from the best a candidate may be in screening to be tried alone.
const NOISE: f64 = 0.03;
/// The same where screening timed a part of the work on a part of the partition.
const SCALED_NOISE: f64 = 0.06;

/// How many candidates of a task are tried alone, the untuned one not counted.
const MAX_FINALISTS: usize = 4;
/// The same where screening was on a part of the partition.
const MAX_SCALED_FINALISTS: usize = 5;

/// How many of the candidates that could not be screened are tried alone.
const MAX_UNSCREENED: usize = 3;

/// The candidate that is taken where nothing is known.
const UNTUNED: usize = 0;

/// How much slower the control kernel may be before a time does not count.
const MAX_INTERFERENCE: f64 = 1.10;

/// How often a candidate is timed again because something interfered.
const MAX_ATTEMPTS: usize = 3;

/// Decides for each task.
pub(super) fn decide(
    device: &dyn TunableDevice,
    Assignment { size, tasks, .. }: Assignment<'_>,
    screened: &Screened,
    options: &TuneOptions,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Vec<Option<Choice>>, TuneError> {
    let units = device.disjoint_partitions(size);
    let units = units.first().ok_or(TuneError::NoPartition { size })?;
    let mut finals = Finals {
        bench: device.bench(units)?,
        options,
        observer,
        is_scaled: screened.is_scaled,
        is_short: false,
    };
    // Where screening was ended early, the finals are short; where they are ended themselves, they are over.
    let was_running = !stop.is_asked();
    finals.is_short = !was_running;
    let mut choices = Vec::with_capacity(tasks.len());
    let mut progress = Progress {
        phase: Phase::Finals,
        done: 0,
        expected: tasks.len(),
        finished_tasks: 0,
        tasks: tasks.len(),
        best_time: Duration::ZERO,
        untuned_time: Duration::ZERO,
        benches: Vec::new(),
    };
    for (index, (task, search)) in tasks.iter().zip(screened.effort.searches()).enumerate() {
        // Who wants an end gets one: what was not decided by then is decided when the session is run again.
        if stop.is_asked() && was_running {
            break;
        }
        // A search that was ended before it began has nothing to say.
        let choice = match was_running || search.best().is_some() {
            true => finals.choice(index, task, search)?,
            false => None,
        };
        if let Some(choice) = &choice {
            observer.chosen(index, choice).map_err(TuneError::Observer)?;
            progress.best_time += choice.time.mul_f64(task.occurrences);
            progress.untuned_time += choice.untuned_time.mul_f64(task.occurrences);
        }
        progress.done += 1;
        progress.finished_tasks += 1;
        observer.progress(&progress);
        choices.push(choice);
    }
    choices.resize(tasks.len(), None);
    Ok(choices)
}

struct Finals<'a> {
    bench: Box<dyn Bench>,
    options: &'a TuneOptions,
    observer: &'a dyn Observer,
    is_scaled: bool,
    /// The fastest of the screening alone is tried.
    is_short: bool,
}

impl Finals<'_> {
    /// Tries a task's finalists, and those that are left after a short look for longer; `None` where the untuned candidate
    /// itself cannot be timed.
    fn choice(
        &mut self,
        index: usize,
        task: &Task,
        search: &Search,
    ) -> Result<Option<Choice>, TuneError> {
        let effort = self.options.final_effort;
        let Some(mut untuned_time) = self.time(index, task, UNTUNED, effort / 4)? else {
            return Ok(None);
        };
        let mut short = Vec::new();
        for candidate in self.finalists(task, search) {
            if let Some(time) = self.time(index, task, candidate, effort / 4)? {
                short.push((candidate, time));
            }
        }
        let best = short.iter().map(|(_, time)| *time).min().unwrap_or(untuned_time);
        let (near, enough) = (best.mul_f64(1.0 + NOISE), self.needed(untuned_time, -NOISE));
        short.retain(|(_, time)| *time <= near && *time <= enough);
        let mut chosen = (UNTUNED, untuned_time);
        if !short.is_empty() {
            untuned_time = self.time(index, task, UNTUNED, effort)?.unwrap_or(untuned_time);
            chosen.1 = untuned_time;
        }
        for (candidate, _) in short {
            match self.time(index, task, candidate, effort)? {
                Some(time) if time < chosen.1 && time <= self.needed(untuned_time, 0.0) => {
                    chosen = (candidate, time);
                }
                _ => {}
            }
        }
        let (candidate, time) = chosen;
        Ok(Some(Choice { candidate, time, untuned_time, trials: search.trials() }))
    }

    /// What a candidate may take to be chosen, and less by a share.
    fn needed(&self, untuned_time: Duration, less: f64) -> Duration {
        untuned_time.mul_f64((1.0 - self.options.least_gain) * (1.0 - less))
    }

    fn finalists(&self, task: &Task, search: &Search) -> Vec<usize> {
        let (noise, most) = match (self.is_short, self.is_scaled) {
            (true, _) => (0.0, 1),
            (false, true) => (SCALED_NOISE, MAX_SCALED_FINALISTS),
            (false, false) => (NOISE, MAX_FINALISTS),
        };
        let contenders = search.contenders(noise);
        let contenders = contenders.into_iter().filter(|&one| one != UNTUNED).take(most);
        let all = task.operator.candidates().iter().enumerate();
        let banned = |candidate: usize| {
            task.known.iter().any(|known| known.candidate == candidate && known.time.is_none())
        };
        let unscreened = all
            .filter(|&(one, description)| {
                let is_unscreened = self.is_scaled && !description.can_be_screened;
                is_unscreened && !self.is_short && one != UNTUNED && !banned(one)
            })
            .map(|(one, _)| one)
            .take(MAX_UNSCREENED);
        contenders.chain(unscreened).collect()
    }

    /// What a candidate takes alone; `None` where it is wrong or cannot be run.
    fn time(
        &mut self,
        index: usize,
        task: &Task,
        candidate: usize,
        effort: Duration,
    ) -> Result<Option<Duration>, TuneError> {
        if task.operator.compile(candidate).is_err() {
            return Ok(None);
        }
        let mut least = None;
        for _ in 0..MAX_ATTEMPTS {
            if !self.observer.starting(index, candidate).map_err(TuneError::Observer)? {
                return Ok(None);
            }
            let trial = self.bench.try_candidate(&*task.operator, candidate, effort)?;
            let measurement = match &trial {
                Trial::Measured(measurement) => Some(*measurement),
                Trial::Wrong { .. } | Trial::Failed(_) => None,
            };
            let (stage, bench) = (TrialStage::Alone, 0);
            let report = TrialReport { task: index, candidate, stage, bench, trial };
            self.observer.tried(&report).map_err(TuneError::Observer)?;
            let Some(measurement) = measurement else { return Ok(None) };
            least = least.into_iter().chain([measurement.time]).min();
            if measurement.interference <= MAX_INTERFERENCE {
                break;
            }
        }
        Ok(least)
    }
}
