//! Tuning sessions on a device whose times are made up, and known.

mod device;
mod tenant;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use device::{FakeDevice, FakeOperator};
use weft_device::{DeviceError, Measurement, Trial, TunableDevice};
use weft_tuner::cost_model::TrainingRows;
use weft_tuner::database::Database;
use weft_tuner::search::{SearchOptions, Strategy};
use weft_tuner::session::{
    Assignment, Choice, CompileBudget, Observer, Outcome, Part, Progress, Shard, Sharing, Silent,
    Stop, Task, TrialReport, TrialStage, TuneError, TuneOptions, try_all, tune,
};
use weft_tuner::{Elsewhere, Recorder, experience};

fn exhaustive() -> TuneOptions {
    let search = SearchOptions { strategy: Strategy::Exhaustive, ..SearchOptions::default() };
    let compiles = CompileBudget { base: 1000, ..CompileBudget::default() };
    TuneOptions { search, compiles, compile_threads: Some(2), ..TuneOptions::default() }
}

fn run(device: &FakeDevice, tasks: &[Task], options: &TuneOptions) -> Result<Outcome, TuneError> {
    let experience = TrainingRows::default();
    let assignment = Assignment { size: 4, tasks, experience: &experience };
    tune(device, assignment, options, &Silent, &Stop::new())
}

fn chosen(outcome: &Outcome) -> Vec<usize> {
    outcome.choices.iter().map(|choice| choice.expect("a choice").candidate).collect()
}

#[test]
fn the_fastest_right_candidate_is_chosen() {
    let device = FakeDevice::new(8);
    let tasks = [
        FakeOperator::new("plain", &[10.0, 7.0, 5.0, 9.0]).task(),
        FakeOperator::new("wrong", &[10.0, 1.0, 5.0, 9.0]).wrong(1).task(),
        FakeOperator::new("failing", &[10.0, 7.0, 2.0, 9.0]).failing(2).task(),
        FakeOperator::new("uncompilable", &[10.0, 7.0, 2.0, 3.0]).uncompilable(2).task(),
        FakeOperator::new("untuned is best", &[5.0, 7.0, 6.0, 9.0]).task(),
        FakeOperator::new("no gain", &[5.0, 4.99, 6.0, 9.0]).task(),
    ];
    for sharing in [Sharing::All, Sharing::AtMost(2), Sharing::OneAtATime] {
        let outcome = run(&device, &tasks, &TuneOptions { sharing, ..exhaustive() }).unwrap();
        assert_eq!(chosen(&outcome), [2, 2, 1, 3, 0, 0], "{sharing:?}");
        assert_eq!((outcome.statistics.wrong, outcome.statistics.failed), (1, 2));
        let gain = outcome.choices[0].unwrap().gain();
        assert!((gain - 2.0).abs() < 1e-9, "{gain}");
    }
}

#[test]
fn a_learned_search_of_many_operators_finds_better_ones_than_as_many_trials_by_chance() {
    let (learned, trials) = regret_of(Strategy::Learned, 60);
    let (random, random_trials) =
        regret_of(Strategy::Random, trials.div_ceil(OPERATORS * SESSIONS));
    assert!(random_trials >= trials, "{random_trials} and {trials}");
    assert!(learned < 0.75 * random, "{learned} and {random}");
}

const OPERATORS: usize = 12;
/// How threads take turns has a part in what one session finds.
const SESSIONS: usize = 24;

/// How far above the best what was chosen is, on average over operators and sessions, and all the trials it took.
fn regret_of(strategy: Strategy, max_trials: usize) -> (f64, usize) {
    let device = FakeDevice::new(8);
    let landscape = |seed| FakeOperator::landscape(seed as u64, 300).task();
    let tasks: Vec<Task> = (0..OPERATORS).map(landscape).collect();
    let (mut regret, mut trials) = (0.0, 0);
    for seed in 0..SESSIONS as u64 {
        let search = SearchOptions { strategy, seed, max_trials, ..SearchOptions::default() };
        let outcome = run(&device, &tasks, &TuneOptions { search, ..exhaustive() }).unwrap();
        for (task, choice) in tasks.iter().zip(&outcome.choices) {
            let operator = task.operator.as_any().downcast_ref::<FakeOperator>().unwrap();
            regret += choice.unwrap().time.as_secs_f64() * 1e6 / operator.best_us() - 1.0;
        }
        trials += outcome.statistics.trials;
    }
    assert!(trials <= max_trials * OPERATORS * SESSIONS);
    (regret / (OPERATORS * SESSIONS) as f64, trials)
}

#[test]
fn what_screening_on_a_part_cannot_tell_is_decided_on_the_whole() {
    // On a part, candidates look up to 8 % better or worse than they are.
    let device = FakeDevice::new(8).screening_on(1).with_error(0.08);
    let tasks: Vec<Task> = (0..6).map(|seed| FakeOperator::landscape(seed, 40).task()).collect();
    let outcome = run(&device, &tasks, &exhaustive()).unwrap();
    for (task, choice) in tasks.iter().zip(&outcome.choices) {
        let operator = task.operator.as_any().downcast_ref::<FakeOperator>().unwrap();
        let regret = choice.unwrap().time.as_secs_f64() * 1e6 / operator.best_us();
        assert!(regret < 1.04, "{regret}");
    }
    assert_eq!(outcome.statistics.benches, 8);
}

#[test]
fn candidates_that_cannot_be_screened_have_their_chance_in_the_finals() {
    let device = FakeDevice::new(8).screening_on(1);
    let operator = FakeOperator::new("library", &[10.0, 9.0, 3.0, 8.0]).spare(2);
    let outcome = run(&device, &[operator.task()], &exhaustive()).unwrap();
    assert_eq!(chosen(&outcome), [2]);
    let (device, options) = (FakeDevice::new(4), exhaustive());
    let operator = FakeOperator::new("library", &[10.0, 9.0, 3.0, 8.0]).spare(2);
    assert_eq!(chosen(&run(&device, &[operator.task()], &options).unwrap()), [2]);
}

#[test]
fn what_is_chosen_for_other_sizes_has_its_chance_in_the_finals() {
    let times_us: Vec<f64> = (0..40).map(|number| if number == 37 { 3.0 } else { 10.0 }).collect();
    let search = SearchOptions { max_trials: 1, ..exhaustive().search };
    let search = SearchOptions { strategy: Strategy::Learned, ..search };
    let options = TuneOptions { search, ..exhaustive() };
    let task = || FakeOperator::new("operator", &times_us).task();
    let device = FakeDevice::new(4);
    assert_eq!(chosen(&run(&device, &[task()], &options).unwrap()), [0]);
    let told = Task { chosen_elsewhere: vec![37], ..task() };
    assert_eq!(chosen(&run(&device, &[told], &options).unwrap()), [37]);
}

#[test]
fn disturbed_trials_are_repeated() {
    let device = FakeDevice::new(4).disturbing(16);
    let tasks: Vec<Task> = (0..16).map(|seed| FakeOperator::landscape(seed, 40).task()).collect();
    let outcome = run(&device, &tasks, &exhaustive()).unwrap();
    assert!(outcome.statistics.repeated > 0);
    for (task, choice) in tasks.iter().zip(&outcome.choices) {
        let operator = task.operator.as_any().downcast_ref::<FakeOperator>().unwrap();
        assert!(choice.unwrap().time.as_secs_f64() * 1e6 <= operator.best_us() * 1.04);
    }
}

#[test]
fn a_lost_device_and_a_full_database_end_the_session() {
    let tasks = [FakeOperator::landscape(1, 40).task()];
    let lost = run(&FakeDevice::new(4).lost_after(5), &tasks, &exhaustive());
    assert!(matches!(lost, Err(TuneError::Device(DeviceError::Failed(_)))), "{lost:?}");
    struct Full;
    impl Observer for Full {
        fn starting(&self, _: usize, _: usize) -> Result<bool, String> {
            Ok(true)
        }
        fn tried(&self, _: &TrialReport) -> Result<(), String> {
            Err("no space left".into())
        }
        fn chosen(&self, _: usize, _: &Choice) -> Result<(), String> {
            Ok(())
        }
        fn progress(&self, _: &Progress) {}
    }
    let experience = TrainingRows::default();
    let assignment = Assignment { size: 4, tasks: &tasks, experience: &experience };
    let full = tune(&FakeDevice::new(4), assignment, &exhaustive(), &Full, &Stop::new());
    assert!(matches!(full, Err(TuneError::Observer(why)) if why.contains("space")));
}

#[test]
fn who_asks_for_an_end_gets_what_was_found() {
    /// Asks for an end after so many trials.
    struct Impatient<'a>(&'a Stop, AtomicUsize);
    impl Observer for Impatient<'_> {
        fn starting(&self, _: usize, _: usize) -> Result<bool, String> {
            Ok(true)
        }
        fn tried(&self, _: &TrialReport) -> Result<(), String> {
            if self.1.fetch_add(1, Ordering::Relaxed) == 30 {
                self.0.ask();
            }
            Ok(())
        }
        fn chosen(&self, _: usize, _: &Choice) -> Result<(), String> {
            Ok(())
        }
        fn progress(&self, _: &Progress) {}
    }
    let stop = Stop::new();
    let tasks: Vec<Task> = (0..4).map(|seed| FakeOperator::landscape(seed, 500).task()).collect();
    let experience = TrainingRows::default();
    let assignment = Assignment { size: 4, tasks: &tasks, experience: &experience };
    let impatient = Impatient(&stop, AtomicUsize::new(0));
    let outcome = tune(&FakeDevice::new(4), assignment, &exhaustive(), &impatient, &stop).unwrap();
    assert!(outcome.statistics.trials < 100);
    assert!(outcome.choices.iter().any(Option::is_some));
}

#[test]
fn a_session_goes_on_where_another_ended_and_processes_share_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(&folder.path().join("tuning.db")).unwrap();
    let device = FakeDevice::new(4);
    let tasks =
        || -> Vec<Task> { (0..5).map(|seed| FakeOperator::landscape(seed, 30).task()).collect() };
    let whole = run(&device, &tasks(), &exhaustive()).unwrap();
    // Two processes screen, each its own operators on its own partitions; one decides.
    let part = |part, shard: Shard| {
        let mut tasks = tasks();
        if part == Part::Screening {
            tasks = shard.of(tasks).collect();
        }
        let recorder = Recorder::new(&database, &device.platform(), 4, &tasks);
        recorder.recall(&mut tasks).unwrap();
        let experience = experience(&database, &device.platform()).unwrap();
        let assignment = Assignment { size: 4, tasks: &tasks, experience: &experience };
        let watching = Recording { recorder: &recorder, tasks: &tasks };
        let options = TuneOptions { part, shard, ..exhaustive() };
        tune(&device, assignment, &options, &watching, &Stop::new()).unwrap()
    };
    let shard = |number| Shard { number, count: 2 };
    let first = part(Part::Screening, shard(0)).statistics;
    let second = part(Part::Screening, shard(1)).statistics;
    assert_eq!((first.trials, second.trials), (3 * 30, 2 * 30));
    assert_eq!((first.benches, second.benches), (2, 2));
    assert_eq!(part(Part::Screening, shard(0)).statistics.trials, 0, "nothing is tried twice");
    let decided = part(Part::Finals, Shard::default());
    assert_eq!(chosen(&decided), chosen(&whole));
    let choices = database.recorded_choices().unwrap();
    assert_eq!(choices.len(), 5);
}

#[test]
fn what_is_chosen_for_other_sizes_is_told_with_what_it_takes_here() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(&folder.path().join("tuning.db")).unwrap();
    let platform = FakeDevice::new(4).platform();
    let tasks: Vec<Task> = (0..3).map(|seed| FakeOperator::landscape(seed, 30).task()).collect();
    let us = Duration::from_micros;
    let choose = |size: usize, candidates: [usize; 3]| {
        let recorder = Recorder::new(&database, &platform, size, &tasks);
        for (task, candidate) in candidates.into_iter().enumerate() {
            let choice = Choice { candidate, time: us(7), untuned_time: us(9), trials: 1 };
            recorder.chosen(&tasks, task, &choice).unwrap();
        }
    };
    choose(4, [1, 1, 1]);
    choose(16, [2, 3, 4]);
    choose(5, [5, 6, 7]);
    let here = Recorder::new(&database, &platform, 4, &tasks);
    assert_eq!(here.elsewhere(&tasks).unwrap(), [], "nothing was timed here");
    let tried = |task: usize, candidate: usize, trial: Trial| {
        let (stage, bench) = (TrialStage::Screened, 0);
        assert!(here.starting(&tasks, task, candidate).unwrap());
        here.tried(&tasks, &TrialReport { task, candidate, stage, bench, trial }).unwrap();
    };
    let measured = |time| Trial::Measured(Measurement { time, spread: 0.0, interference: 1.0 });
    tried(0, 2, measured(us(11)));
    tried(1, 3, measured(us(12)));
    tried(2, 7, measured(us(13)));
    tried(1, 6, Trial::Wrong { error: 1.0 });
    let elsewhere = here.elsewhere(&tasks).unwrap();
    let near = Elsewhere { size: 5, chosen: vec![None, None, Some((7, us(13)))] };
    let far = Elsewhere { size: 16, chosen: vec![Some((2, us(11))), Some((3, us(12))), None] };
    assert_eq!(elsewhere, [near, far], "the nearest first, and nothing that is wrong here");
}

/// Writes down what a session finds.
struct Recording<'a> {
    recorder: &'a Recorder<'a>,
    tasks: &'a [Task],
}

impl Observer for Recording<'_> {
    fn starting(&self, task: usize, candidate: usize) -> Result<bool, String> {
        Ok(self.recorder.starting(self.tasks, task, candidate).unwrap())
    }
    fn tried(&self, report: &TrialReport) -> Result<(), String> {
        self.recorder.tried(self.tasks, report).unwrap();
        Ok(())
    }
    fn chosen(&self, task: usize, choice: &Choice) -> Result<(), String> {
        self.recorder.chosen(self.tasks, task, choice).unwrap();
        Ok(())
    }
    fn progress(&self, _: &Progress) {}
}

#[test]
fn a_budget_ends_a_session_and_sizes_must_exist() {
    let tasks: Vec<Task> = (0..4).map(|seed| FakeOperator::landscape(seed, 200).task()).collect();
    let budget = Some(Duration::ZERO);
    let outcome =
        run(&FakeDevice::new(4), &tasks, &TuneOptions { budget, ..exhaustive() }).unwrap();
    assert_eq!(outcome.statistics.trials, 0);
    let none = run(&FakeDevice::new(0), &tasks, &exhaustive());
    assert!(matches!(none, Err(TuneError::NoPartition { size: 4 })));
    let shard = Shard { number: 5, count: 6 };
    let crowded = run(&FakeDevice::new(4), &tasks, &TuneOptions { shard, ..exhaustive() });
    assert!(matches!(crowded, Err(TuneError::TooManyShares { shares: 6, partitions: 4 })));
}

#[test]
fn no_more_is_compiled_than_the_budget_allows() {
    let operator = |seed| FakeOperator::landscape(seed, 320).compiled_from(40).task();
    let tasks: Vec<Task> = (0..3).map(operator).collect();
    let compiles = CompileBudget { base: 2, per_operator: 1.0 };
    let outcome = run(&FakeDevice::new(4), &tasks, &TuneOptions { compiles, ..exhaustive() });
    // Five of the forty things that candidates need, which all operators share.
    assert_eq!(outcome.unwrap().statistics.trials, 3 * 5 * 320 / 40);
}

#[test]
fn a_batch_of_trials_comes_back_in_order() {
    let tasks = [FakeOperator::landscape(3, 50).task(), FakeOperator::landscape(4, 50).task()];
    let experience = TrainingRows::default();
    let assignment = Assignment { size: 4, tasks: &tasks, experience: &experience };
    let asked: Vec<(usize, usize)> = (0..100).map(|place| (place % 2, place / 2)).collect();
    let device = FakeDevice::new(4);
    let trials = try_all(&device, assignment, 4, &asked, &exhaustive()).unwrap();
    for ((task, candidate), trial) in asked.into_iter().zip(trials) {
        let operator = tasks[task].operator.as_any().downcast_ref::<FakeOperator>().unwrap();
        let Trial::Measured(measurement) = trial else { panic!("{trial:?}") };
        assert_eq!(measurement.time, operator.time(candidate));
    }
}
