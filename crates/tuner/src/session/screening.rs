//! The first part of a session: candidates are tried side by side, as each operator's search proposes them.

use std::collections::HashMap;
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

use weft_device::{Measurement, Screening, Trial, TunableDevice};

use super::finals::NOISE;
use super::interference::Interference;
use super::learning::Learning;
use super::measure::{Finished, Job};
use super::observer::{Observer, Phase, Progress, TrialReport, TrialStage};
use super::options::{Sharing, TuneOptions};
use super::outcome::Statistics;
use super::pipeline::{self, BenchPlaces, Pipeline};
use super::stop::Stop;
use super::task::Task;
use super::{Assignment, TuneError};
use crate::search::{self, Effort, Proposal, Search, SearchOptions};

/// How often a candidate is tried again because something interfered.
const MAX_ATTEMPTS: usize = 1;

/// How often progress is shown.
const TICK: Duration = Duration::from_millis(100);

/// How many of the candidates that are left to spare benches or to the finals are timed.
const MAX_UNSCREENED: usize = 3;

/// The times of a task's candidates on partitions of the right size.
pub(super) type Times = HashMap<usize, Duration>;

/// What screening found.
pub(super) struct Screened {
    pub(super) effort: Effort,
    /// What was timed besides what the searches proposed, for each task.
    pub(super) spare_times: Vec<Times>,
    /// Where candidates were timed is smaller than what is tuned for.
    pub(super) is_scaled: bool,
    pub(super) statistics: Statistics,
}

/// Tries candidates side by side until every search has seen enough.
pub(super) fn screen(
    device: &dyn TunableDevice,
    Assignment { size, tasks, experience }: Assignment<'_>,
    options: &TuneOptions,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Screened, TuneError> {
    let bench_size = bench_size(device, size, options);
    let is_scaled = bench_size < size;
    let places = BenchPlaces::new(device, bench_size, options)?;
    let mut effort = searches(tasks, options, is_scaled)?;
    let (screened, compile_time) = pipeline::run(tasks, &places, options, observer, |pipeline| {
        thread::scope(|scope| {
            let seed = options.search.seed;
            let learning = Learning::begin(scope, experience, seed, &mut effort);
            let mut coordinator = Coordinator {
                tasks,
                options,
                observer,
                stop,
                start: Instant::now(),
                effort,
                learning,
                interference: Interference::default(),
                in_flight: 0,
                spare_times: vec![Times::new(); tasks.len()],
                window: pipeline.window,
                shown: Instant::now(),
                statistics: Statistics { benches: places.len(), ..Statistics::default() },
                pipeline,
            };
            if !is_scaled {
                coordinator.submit_spare();
            }
            coordinator.run()?;
            let Coordinator { effort, spare_times, statistics, .. } = coordinator;
            Ok::<_, TuneError>(Screened { effort, spare_times, is_scaled, statistics })
        })
    });
    let mut screened = screened?;
    screened.statistics.compile_time = compile_time;
    Ok(screened)
}

/// What earlier sessions have screened, as the tasks know it.
pub(super) fn known(
    device: &dyn TunableDevice,
    Assignment { size, tasks, .. }: Assignment<'_>,
    options: &TuneOptions,
) -> Result<Screened, TuneError> {
    let is_scaled = bench_size(device, size, options) < size;
    let effort = searches(tasks, options, is_scaled)?;
    let spare_times = vec![Times::new(); tasks.len()];
    Ok(Screened { effort, spare_times, is_scaled, statistics: Statistics::default() })
}

/// The size of the partitions that candidates are screened on.
fn bench_size(device: &dyn TunableDevice, size: usize, options: &TuneOptions) -> usize {
    match options.sharing {
        Sharing::OneAtATime => size,
        Sharing::All | Sharing::AtMost(_) => device.screening_size(size),
    }
}

/// Those of a task's candidates that are timed though no search proposes them.
pub(super) fn first_unscreened(
    task: &Task,
    options: &TuneOptions,
    is_scaled: bool,
) -> impl Iterator<Item = usize> {
    let all = unscreened(task, options, is_scaled);
    let open = all.filter(|&candidate| candidate != 0 && !is_banned(task, candidate));
    open.take(MAX_UNSCREENED)
}

/// Whether processes have ended while they tried it.
fn is_banned(task: &Task, candidate: usize) -> bool {
    task.known.iter().any(|known| known.candidate == candidate && known.time.is_none())
}

/// The candidates that no search proposes where others are tried beside each other.
fn unscreened(task: &Task, options: &TuneOptions, is_scaled: bool) -> impl Iterator<Item = usize> {
    let is_shared = options.sharing != Sharing::OneAtATime;
    let all = task.operator.candidates().iter().enumerate();
    let left = all.filter(move |(_, one)| is_shared && !one.screening.allows(is_scaled));
    left.map(|(candidate, _)| candidate)
}

fn searches(tasks: &[Task], options: &TuneOptions, is_scaled: bool) -> Result<Effort, TuneError> {
    let mut effort = Effort::new(options.search.max_trials.saturating_mul(tasks.len()));
    for (number, task) in tasks.iter().enumerate() {
        // Operators that begin alike learn the same; those that begin differently learn from each other.
        let seed = options.search.seed.wrapping_add(number as u64);
        let search = SearchOptions { seed, ..options.search };
        let mut search = search_of(task, search)?;
        unscreened(task, options, is_scaled).for_each(|candidate| search.ban(candidate));
        effort.add(search, task.occurrences);
    }
    Ok(effort)
}

/// The search of a task, with what is known of it.
fn search_of(task: &Task, options: SearchOptions) -> Result<Search, TuneError> {
    let candidates = task.operator.candidates();
    let mut search = Search::new(candidates, options).map_err(|source| TuneError::Search {
        operator: task.operator.key().operator.clone(),
        source,
    })?;
    for known in &task.known {
        match known.time {
            Some(time) => search.recall(known.candidate, search::Outcome::Time(time)),
            None => search.ban(known.candidate),
        }
    }
    Ok(search)
}

struct Coordinator<'a> {
    tasks: &'a [Task],
    options: &'a TuneOptions,
    observer: &'a dyn Observer,
    stop: &'a Stop,
    start: Instant,
    effort: Effort,
    learning: Learning,
    interference: Interference,
    /// Jobs that the searches have asked for.
    in_flight: usize,
    spare_times: Vec<Times>,
    window: usize,
    /// When progress was last shown.
    shown: Instant,
    statistics: Statistics,
    pipeline: Pipeline<'a>,
}

impl Coordinator<'_> {
    fn run(&mut self) -> Result<(), TuneError> {
        loop {
            if !self.is_over() {
                self.fill();
            }
            if self.in_flight == 0 {
                // What is learned last may be worth a few trials more.
                if self.is_over() || !self.learning.settle(&mut self.effort) {
                    return Ok(());
                }
                continue;
            }
            match self.pipeline.finished.recv_timeout(TICK) {
                Ok(finished) => self.finish(finished?)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if self.shown.elapsed() >= TICK {
                self.observer.progress(&self.progress());
                self.shown = Instant::now();
            }
        }
    }

    fn is_over(&self) -> bool {
        let is_late = self.options.budget.is_some_and(|budget| self.start.elapsed() >= budget);
        is_late || self.stop.is_asked()
    }

    /// Has the searches propose until enough is in flight.
    fn fill(&mut self) {
        let Pipeline { to_compile, compile_width, .. } = self.pipeline;
        let budget = self.options.compiles.of(self.tasks.len());
        let left = budget.saturating_sub(self.effort.compiled());
        // Compilers take longest, so that they have something to do even where enough waits for benches.
        let has_room = self.in_flight < self.window + compile_width;
        if has_room && to_compile.waiting() < compile_width / 4 {
            let next = self.effort.next_to_compile(left.min(compile_width.div_ceil(2)));
            self.submit(next);
        }
        // Jobs that wait for a compiler keep no bench busy.
        let parked = to_compile.parked().min(self.window);
        let wanted = (self.window + parked).saturating_sub(self.in_flight);
        // Asked for in batches, so that proposals are weighed against each other.
        if wanted * 4 < self.window && self.in_flight > 0 {
            return;
        }
        // Benches that wait for a compiler could as well try what is compiled.
        let left = budget.saturating_sub(self.effort.compiled());
        let idle = compile_width.saturating_sub(to_compile.waiting());
        let next = self.effort.next_within(wanted, idle.min(left));
        self.submit(next);
    }

    /// Has benches that wait for a compiler try what the searches leave out; what is left when they are done is left to
    /// the finals.
    fn submit_spare(&self) {
        for (number, task) in self.tasks.iter().enumerate() {
            for candidate in first_unscreened(task, self.options, false) {
                if task.operator.candidates()[candidate].screening == Screening::Spare {
                    self.pipeline.submit(Job { is_spare: true, ..Job::new(number, candidate) });
                }
            }
        }
    }

    fn submit(&mut self, proposals: Vec<Proposal>) {
        self.in_flight += proposals.len();
        for Proposal { operator, candidate } in proposals {
            self.pipeline.submit(Job::new(operator, candidate));
        }
    }

    fn finish(&mut self, Finished { job, bench, mut trial }: Finished) -> Result<(), TuneError> {
        self.statistics.note(&trial);
        if let (Trial::Measured(measurement), Some(least)) = (&mut trial, job.least) {
            // What interferes makes a candidate slower, and none faster.
            measurement.time = measurement.time.min(least);
        }
        if job.is_spare {
            if let Trial::Measured(measurement) = &trial {
                self.spare_times[job.task].insert(job.candidate, measurement.time);
            }
            return self.report(job, bench, trial);
        }
        self.in_flight -= 1;
        let outcome = match &trial {
            Trial::Measured(measurement) => {
                let excess = self.interference.excess(measurement.interference);
                self.effort.expect_noise(self.interference.noise());
                let in_doubt =
                    excess.is_some_and(|excess| self.could_win(job, measurement, excess));
                if in_doubt && job.attempt < MAX_ATTEMPTS && !self.is_over() {
                    self.statistics.repeated += 1;
                    self.in_flight += 1;
                    let again =
                        Job { attempt: job.attempt + 1, least: Some(measurement.time), ..job };
                    self.pipeline.measure(again);
                    return Ok(());
                }
                search::Outcome::Time(measurement.time)
            }
            Trial::Wrong { .. } | Trial::Failed(_) => search::Outcome::Disqualified,
        };
        let proposal = Proposal { operator: job.task, candidate: job.candidate };
        self.effort.record(proposal, outcome);
        self.learning.note(&mut self.effort);
        self.report(job, bench, trial)
    }

    fn report(&self, job: Job, bench: Option<usize>, trial: Trial) -> Result<(), TuneError> {
        let report = TrialReport {
            task: job.task,
            candidate: job.candidate,
            stage: TrialStage::Screened,
            bench: bench.unwrap_or(0),
            trial,
        };
        self.observer.tried(&report).map_err(TuneError::Observer)
    }

    /// Whether a candidate could be among the fastest if it was held up by that much. The untuned one is what all others
    /// are compared with, so that its time has to be right.
    fn could_win(&self, job: Job, measurement: &Measurement, held_up: f64) -> bool {
        let Some((_, best)) = self.effort.search(job.task).best() else { return true };
        job.candidate == 0 || measurement.time.div_f64(held_up) <= best.mul_f64(1.0 + NOISE)
    }

    fn progress(&self) -> Progress {
        let time = |read: &dyn Fn(&Search) -> Option<Duration>| {
            let both = self.effort.searches().zip(self.tasks);
            both.filter_map(|(search, task)| Some(read(search)?.mul_f64(task.occurrences))).sum()
        };
        let left = |search: &Search| match search.is_done() {
            true => 0,
            false => self.options.search.max_trials.saturating_sub(search.trials()),
        };
        let done = self.statistics.trials;
        let expected = done + self.effort.searches().map(left).sum::<usize>();
        Progress {
            phase: Phase::Screening,
            done,
            expected,
            best_time: time(&|search| Some(search.best()?.1)),
            untuned_time: time(&Search::reference),
        }
    }
}
