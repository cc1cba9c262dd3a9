//! The threads of a session: some compile, one on each bench measures, and whoever decides stands at both ends.

use std::iter;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use weft_device::{Bench, DeviceError, TunableDevice, UnitSet};

use super::TuneError;
use super::compile::compile;
use super::compile_queue::{CompileQueue, Taking};
use super::measure::{Finished, Job, Measuring, code_of};
use super::measure_queue::MeasureQueue;
use super::observer::Observer;
use super::options::{Sharing, TuneOptions};
use super::task::Task;

/// Where jobs go in, and where they come out.
pub(super) struct Pipeline<'a> {
    tasks: &'a [Task],
    /// Jobs whose candidates may have to be compiled.
    pub(super) to_compile: &'a CompileQueue,
    /// Jobs whose candidates are compiled.
    to_measure: &'a MeasureQueue,
    /// What was tried, or why nothing more can be.
    pub(super) finished: Receiver<Result<Finished, TuneError>>,
    /// How many jobs in flight keep all threads busy. More would be proposed before the first of them have taught anything.
    pub(super) window: usize,
    /// How many jobs keep those busy that compile.
    pub(super) compile_width: usize,
}

impl Pipeline<'_> {
    /// Has a candidate compiled, where it has to be, and tried.
    pub(super) fn submit(&self, job: Job) {
        self.to_compile.push(job, code_of(self.tasks, job));
    }

    /// Has a candidate tried that is compiled.
    pub(super) fn measure(&self, job: Job) {
        self.to_measure.push(job);
    }
}

/// Runs `decide` beside threads that compile and measure; says how long threads compiled, all together.
pub(super) fn run<R>(
    tasks: &[Task],
    places: &BenchPlaces<'_>,
    options: &TuneOptions,
    observer: &dyn Observer,
    decide: impl FnOnce(Pipeline<'_>) -> R,
) -> (R, Duration) {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let threads = options.compile_threads.unwrap_or_else(cores).max(1);
    let (to_compile, to_measure) = (CompileQueue::default(), MeasureQueue::default());
    let candidates = tasks.iter().flat_map(|task| task.operator.candidates());
    let compiles = candidates.map(|candidate| candidate.code).any(|code| code.is_some());
    let window = match compiles {
        true => 2 * (places.len() + threads),
        false => places.len() + 1,
    };
    let (sender, finished) = channel();
    thread::scope(|scope| {
        let all_take = iter::repeat_n(Taking::Any, threads).chain([Taking::Ready]);
        let compilers: Vec<_> = all_take
            .map(|taking| {
                let sender = sender.clone();
                let (from, to) = (&to_compile, &to_measure);
                scope.spawn(move || compile(tasks, taking, from, to, &sender))
            })
            .collect();
        let measuring = Measuring { tasks, effort: options.effort, from: &to_measure, observer };
        // Benches are made one after another, before any of them is used, so that each finds the device idle; the
        // compilers need not wait for that.
        scope.spawn(move || match places.benches() {
            Ok(benches) => {
                for (number, mut bench) in benches.into_iter().enumerate() {
                    let sender = sender.clone();
                    scope.spawn(move || measuring.run(number, &mut *bench, &sender));
                }
            }
            Err(error) => {
                // Nobody listens any more where the session has ended.
                let _ = sender.send(Err(error.into()));
            }
        });
        let decided = decide(Pipeline {
            tasks,
            to_compile: &to_compile,
            to_measure: &to_measure,
            finished,
            window,
            compile_width: threads,
        });
        to_compile.close();
        to_measure.close();
        let spent = compilers.into_iter().map(|thread| thread.join().unwrap_or_default()).sum();
        (decided, spent)
    })
}

/// Partitions of one size, as many as may be used at once.
pub(super) struct BenchPlaces<'a> {
    device: &'a dyn TunableDevice,
    sets: Vec<UnitSet>,
}

impl<'a> BenchPlaces<'a> {
    pub(super) fn new(
        device: &'a dyn TunableDevice,
        size: usize,
        options: &TuneOptions,
    ) -> Result<Self, TuneError> {
        let most = match options.sharing {
            Sharing::OneAtATime => 1,
            Sharing::AtMost(count) => count.max(1),
            Sharing::All => usize::MAX,
        };
        let all = device.disjoint_partitions(size);
        if all.is_empty() {
            return Err(TuneError::NoPartition { size });
        }
        let partitions = all.len();
        let sets: Vec<UnitSet> = options.shard.of(all).take(most).collect();
        match sets.is_empty() {
            true => Err(TuneError::TooManyShares { shares: options.shard.count, partitions }),
            false => Ok(Self { device, sets }),
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    fn benches(&self) -> Result<Vec<Box<dyn Bench>>, DeviceError> {
        self.sets.iter().map(|units| self.device.bench(units)).collect()
    }
}
