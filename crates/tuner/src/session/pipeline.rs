//! The threads of a session: some compile, one on each bench measures, and whoever decides stands at both ends.

use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use weft_device::{Bench, TunableDevice};

use super::TuneError;
use super::compile::compile;
use super::measure::{Finished, Job, Measuring};
use super::observer::Observer;
use super::options::{Sharing, TuneOptions};
use super::task::Task;
use super::work_queue::WorkQueue;

/// Where jobs go in, and where they come out.
pub(super) struct Pipeline<'a> {
    /// Jobs whose candidates may have to be compiled.
    pub(super) to_compile: &'a WorkQueue<Job>,
    /// Jobs whose candidates are compiled.
    pub(super) to_measure: &'a WorkQueue<Job>,
    pub(super) finished: Receiver<Finished>,
    /// How many jobs in flight keep all threads busy. More would be proposed before the first of them have taught anything.
    pub(super) window: usize,
    /// How many jobs keep those busy that compile.
    pub(super) compile_width: usize,
}

/// Runs `decide` beside threads that compile and measure; says how long threads compiled, all together.
pub(super) fn run<R>(
    tasks: &[Task],
    benches: Vec<Box<dyn Bench>>,
    options: &TuneOptions,
    observer: &dyn Observer,
    decide: impl FnOnce(Pipeline<'_>) -> R,
) -> (R, Duration) {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let threads = options.compile_threads.unwrap_or_else(cores).max(1);
    let (to_compile, to_measure) = (WorkQueue::new(), WorkQueue::new());
    let candidates = tasks.iter().flat_map(|task| task.operator.candidates());
    let compiles = candidates.map(|candidate| candidate.code).any(|code| code.is_some());
    let window = match compiles {
        true => 2 * (benches.len() + threads),
        false => benches.len() + 1,
    };
    let (sender, finished) = channel();
    thread::scope(|scope| {
        let compilers: Vec<_> = (0..threads)
            .map(|_| {
                let sender = sender.clone();
                let (from, to) = (&to_compile, &to_measure);
                scope.spawn(move || compile(tasks, from, to, &sender))
            })
            .collect();
        let measuring = Measuring { tasks, effort: options.effort, from: &to_measure, observer };
        for (number, mut bench) in benches.into_iter().enumerate() {
            let sender = sender.clone();
            scope.spawn(move || measuring.run(number, &mut *bench, &sender));
        }
        drop(sender);
        let (to_compile, to_measure) = (&to_compile, &to_measure);
        let decided =
            decide(Pipeline { to_compile, to_measure, finished, window, compile_width: threads });
        to_compile.close();
        to_measure.close();
        let spent = compilers.into_iter().map(|thread| thread.join().unwrap_or_default()).sum();
        (decided, spent)
    })
}

/// Benches on partitions of a size, as many as may be used at once.
pub(super) fn benches(
    device: &dyn TunableDevice,
    size: usize,
    options: &TuneOptions,
) -> Result<Vec<Box<dyn Bench>>, TuneError> {
    let most = match options.sharing {
        Sharing::OneAtATime => 1,
        Sharing::AtMost(count) => count.max(1),
        Sharing::All => usize::MAX,
    };
    let sets = device.disjoint_partitions(size);
    if sets.is_empty() {
        return Err(TuneError::NoPartition { size });
    }
    let ours = options.shard.of(&sets).take(most);
    let benches = ours.map(|units| device.bench(units)).collect::<Result<Vec<_>, _>>()?;
    match benches.is_empty() {
        true => {
            Err(TuneError::TooManyShares { shares: options.shard.count, partitions: sets.len() })
        }
        false => Ok(benches),
    }
}
