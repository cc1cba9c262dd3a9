//! The second part of a session: those that screening could not tell apart are tried alone, on a partition of the size that
//! is tuned for.

use std::time::Duration;

use weft_device::{Bench, Trial, TunableDevice};

use super::measure::{Finished, Job};
use super::observer::{Observer, Phase, Progress, TrialReport, TrialStage};
use super::options::TuneOptions;
use super::outcome::Choice;
use super::pipeline::{self, BenchPlaces, Pipeline};
use super::screening::{Screened, Times, first_unscreened};
use super::stop::Stop;
use super::task::Task;
use super::{Assignment, TuneError};
use crate::search::Search;

/// How far from the best a candidate may be to be tried alone.
pub const NOISE: f64 = 0.03;
/// How far from the best it may be where screening timed a part of the work on a part of the partition.
pub const SCALED_NOISE: f64 = 0.06;

/// How much a candidate must save of the untuned one's time to be taken without trying both alone.
const CLEAR_GAIN: f64 = 0.06;

/// How many candidates of a task are tried alone, the untuned one not counted.
const MAX_FINALISTS: usize = 3;
/// How many are timed on a partition of the right size where screening was on a part of one.
const MAX_SCALED_FINALISTS: usize = 3;

/// The share of all tasks' time that a task's candidates must promise to save for any of them to be tried alone.
const LEAST_SAVING: f64 = 3e-4;

/// The share of all tasks' time below which a task is decided with as few trials as can be.
const SMALL_SHARE: f64 = 4e-3;

/// The candidate that is taken where nothing is known.
const UNTUNED: usize = 0;

/// How much slower the control kernel may be before a time does not count.
const MAX_INTERFERENCE: f64 = 1.10;

/// How often a candidate is timed again because something interfered.
const MAX_ATTEMPTS: usize = 2;

/// Decides for each task.
pub(super) fn decide(
    device: &dyn TunableDevice,
    assignment: Assignment<'_>,
    screened: &Screened,
    options: &TuneOptions,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Vec<Option<Choice>>, TuneError> {
    let Assignment { size, tasks, .. } = assignment;
    // Where screening was ended early, only what is clear is decided, and quickly.
    let is_short = stop.is_asked();
    let mut times = match screened.is_scaled {
        true => vec![Times::new(); tasks.len()],
        false => {
            let both = screened.effort.searches().zip(&screened.spare_times);
            both.map(|(search, spare)| screened_times(search, spare)).collect()
        }
    };
    time_what_is_missing(device, assignment, screened, is_short, options, observer, &mut times)?;
    let units = device.disjoint_partitions(size);
    let units = units.first().ok_or(TuneError::NoPartition { size })?;
    let untuned = tasks
        .iter()
        .zip(&times)
        .filter_map(|(task, times)| Some(times.get(&UNTUNED)?.mul_f64(task.occurrences)));
    let least_saving = untuned.sum::<Duration>().mul_f64(LEAST_SAVING);
    let bench = device.bench(units)?;
    let mut finals = Finals { bench, options, observer, is_short, least_saving };
    let mut progress = Progress {
        phase: Phase::Finals,
        done: 0,
        expected: tasks.len(),
        best_time: Duration::ZERO,
        untuned_time: Duration::ZERO,
    };
    let mut choices = Vec::with_capacity(tasks.len());
    for (index, (task, search)) in tasks.iter().zip(screened.effort.searches()).enumerate() {
        // Who wants an end gets one: what was not decided by then is decided when the session is run again.
        if stop.is_asked() && !is_short {
            break;
        }
        let choice = finals.choice(index, task, search, &times[index])?;
        if let Some(choice) = &choice {
            observer.chosen(index, choice).map_err(TuneError::Observer)?;
            progress.best_time += choice.time.mul_f64(task.occurrences);
            progress.untuned_time += choice.untuned_time.mul_f64(task.occurrences);
        }
        progress.done += 1;
        observer.progress(&progress);
        choices.push(choice);
    }
    choices.resize(tasks.len(), None);
    Ok(choices)
}

/// What screening found, where it was on partitions of the right size.
fn screened_times(search: &Search, spare: &Times) -> Times {
    let searched = search.contenders(f64::INFINITY).into_iter();
    let times = searched.filter_map(|candidate| Some((candidate, search.time(candidate)?)));
    times.chain(spare.iter().map(|(&candidate, &time)| (candidate, time))).collect()
}

/// Times what screening left out on partitions of the right size, as many at once as there are: the best of it where it
/// was on parts of partitions, some of the candidates that could not be screened, and those that are chosen on partitions of
/// other sizes.
fn time_what_is_missing(
    device: &dyn TunableDevice,
    Assignment { size, tasks, .. }: Assignment<'_>,
    screened: &Screened,
    is_short: bool,
    options: &TuneOptions,
    observer: &dyn Observer,
    times: &mut [Times],
) -> Result<(), TuneError> {
    let all_time = |(task, search): (&Task, &Search)| {
        search.reference().unwrap_or_default().mul_f64(task.occurrences)
    };
    let total: Duration = tasks.iter().zip(screened.effort.searches()).map(all_time).sum();
    let mut jobs = Vec::new();
    for (index, (task, search)) in tasks.iter().zip(screened.effort.searches()).enumerate() {
        let is_brief = is_short || all_time((task, search)) < total.mul_f64(SMALL_SHARE);
        let mut missing = Vec::new();
        if screened.is_scaled && (!is_short || search.best().is_some()) {
            missing.extend(scaled_finalists(search, is_brief));
        }
        if !is_brief {
            missing.extend(first_unscreened(task, options, screened.is_scaled));
            missing.extend(&task.chosen_elsewhere);
            missing.sort_unstable();
            missing.dedup();
        }
        missing.retain(|candidate| !times[index].contains_key(candidate));
        jobs.extend(missing.into_iter().map(|candidate| Job::new(index, candidate)));
    }
    if jobs.is_empty() {
        return Ok(());
    }
    let places = BenchPlaces::new(device, size, options)?;
    let short = TuneOptions { effort: options.final_effort / 2, ..*options };
    let (timed, _) = pipeline::run(tasks, &places, &short, observer, |pipeline: Pipeline<'_>| {
        let count = jobs.len();
        jobs.into_iter().for_each(|job| pipeline.submit(job));
        for finished in pipeline.finished.iter().take(count) {
            let Finished { job, bench, trial } = finished?;
            if let Trial::Measured(measurement) = &trial {
                times[job.task].insert(job.candidate, measurement.time);
            }
            let (task, candidate, bench) = (job.task, job.candidate, bench.unwrap_or(0));
            let report = TrialReport { task, candidate, stage: TrialStage::Screened, bench, trial };
            observer.tried(&report).map_err(TuneError::Observer)?;
        }
        Ok(())
    });
    timed
}

/// The untuned candidate, and those that screening could not tell from the best.
fn scaled_finalists(search: &Search, is_brief: bool) -> Vec<usize> {
    let (noise, most) = if is_brief { (0.0, 1) } else { (SCALED_NOISE, MAX_SCALED_FINALISTS) };
    let contenders = search.contenders(noise).into_iter().filter(|&one| one != UNTUNED).take(most);
    [UNTUNED].into_iter().chain(contenders).collect()
}

struct Finals<'a> {
    bench: Box<dyn Bench>,
    options: &'a TuneOptions,
    observer: &'a dyn Observer,
    /// Nothing is tried alone.
    is_short: bool,
    /// What a task must promise to save in all its occurrences.
    least_saving: Duration,
}

impl Finals<'_> {
    /// Decides by what is known of a task's candidates where that is clear, and else tries alone those that could be the
    /// fastest. `None` where the untuned candidate was never timed.
    fn choice(
        &mut self,
        index: usize,
        task: &Task,
        search: &Search,
        times: &Times,
    ) -> Result<Option<Choice>, TuneError> {
        let Some(&untuned_time) = times.get(&UNTUNED) else { return Ok(None) };
        let mut ranked: Vec<(usize, Duration)> =
            times.iter().map(|(&c, &time)| (c, time)).collect();
        ranked.sort_by_key(|&(candidate, time)| (time, candidate));
        let (best, best_time) = ranked[0];
        let near = best_time.mul_f64(1.0 + NOISE);
        ranked.retain(|&(candidate, time)| candidate != UNTUNED && time <= near);
        ranked.truncate(MAX_FINALISTS);
        let trials = search.trials();
        let choose =
            |candidate, time, untuned_time| Some(Choice { candidate, time, untuned_time, trials });
        if ranked.is_empty() {
            return Ok(choose(UNTUNED, untuned_time, untuned_time));
        }
        let is_clear = best_time <= untuned_time.mul_f64(1.0 - CLEAR_GAIN);
        if is_clear && (ranked.len() == 1 || self.is_short) {
            return Ok(choose(best, best_time, untuned_time));
        }
        let saving = untuned_time.saturating_sub(best_time);
        let is_enough = saving >= untuned_time.mul_f64(self.options.least_gain)
            && saving.mul_f64(task.occurrences) >= self.least_saving;
        if self.is_short || !is_enough {
            return Ok(choose(UNTUNED, untuned_time, untuned_time));
        }
        let alone = self.time(index, task, UNTUNED)?.unwrap_or(untuned_time);
        let mut chosen = (UNTUNED, alone);
        let needed = alone.mul_f64(1.0 - self.options.least_gain);
        for (candidate, _) in ranked {
            match self.time(index, task, candidate)? {
                Some(time) if time < chosen.1 && time <= needed => chosen = (candidate, time),
                // It looked faster than those after it, and was so by chance.
                Some(time) if time >= alone => break,
                _ => {}
            }
        }
        Ok(choose(chosen.0, chosen.1, alone))
    }

    /// What a candidate takes alone; `None` where it is wrong or cannot be run.
    fn time(
        &mut self,
        index: usize,
        task: &Task,
        candidate: usize,
    ) -> Result<Option<Duration>, TuneError> {
        if task.operator.compile(candidate).is_err() {
            return Ok(None);
        }
        let mut least = None;
        for _ in 0..MAX_ATTEMPTS {
            if !self.observer.starting(index, candidate).map_err(TuneError::Observer)? {
                return Ok(None);
            }
            let effort = self.options.final_effort;
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
