//! Loops around what is launched and waited for, and how long each turn took.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use weft_cuda::CudaExecutable;

use crate::bench::statistics::median;

/// Runs before those that count, however long each takes.
const WARM_UP_RUNS: usize = 3;
/// Runs that a median is of at least.
const MEDIAN_RUNS: usize = 5;

/// Something that is launched, and waited for.
pub(crate) trait Launched: Sync {
    /// Starts a run and does not wait for its end.
    fn launch(&self) -> Result<()>;

    /// Waits for the end of the last run, and says whether it went well.
    fn wait(&self) -> Result<()>;

    /// True where the last run has ended.
    fn is_finished(&self) -> Result<bool>;
}

impl Launched for CudaExecutable {
    fn launch(&self) -> Result<()> {
        Ok(CudaExecutable::launch(self)?)
    }

    fn wait(&self) -> Result<()> {
        Ok(CudaExecutable::wait(self)?)
    }

    fn is_finished(&self) -> Result<bool> {
        Ok(CudaExecutable::is_finished(self)?)
    }
}

/// How long to go on: until there were this many runs and this time has passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtLeast {
    pub(super) runs: usize,
    pub(super) time: Duration,
}

impl AtLeast {
    /// An equal part of it.
    pub(super) fn share(self, parts: u32) -> Self {
        Self { runs: self.runs.div_ceil(parts as usize), time: self.time / parts }
    }
}

/// Runs once, and waits for the end.
pub(super) fn run(subject: &impl Launched) -> Result<()> {
    subject.launch()?;
    subject.wait()
}

/// Runs that are not counted.
pub(super) fn warm_up(subject: &impl Launched, runs: usize) -> Result<()> {
    (0..runs).try_for_each(|_| run(subject))
}

/// One run after another; how long each took in microseconds, from its launch until its end was seen.
pub(super) fn latencies_us(subject: &impl Launched, length: AtLeast) -> Result<Vec<f64>> {
    let begin = Instant::now();
    let mut times = Vec::with_capacity(length.runs);
    while times.len() < length.runs || begin.elapsed() < length.time {
        let start = Instant::now();
        run(subject)?;
        times.push(microseconds(start.elapsed()));
    }
    Ok(times)
}

/// The median latency in microseconds over as many runs as fit into `time`, and a few where it is too short; a quarter
/// as long before is warm-up.
pub(crate) fn median_us(subject: &impl Launched, time: Duration) -> Result<f64> {
    latencies_us(subject, AtLeast { runs: WARM_UP_RUNS, time: time / 4 })?;
    Ok(median(&latencies_us(subject, AtLeast { runs: MEDIAN_RUNS, time })?))
}

/// A duration in microseconds.
pub(super) fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Tells a thread to end, also where the one that it runs for panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Measures while a neighbour runs over and over in another thread. Also says how often it ran per second.
pub(super) fn beside<T>(
    neighbour: &impl Launched,
    measure: impl FnOnce() -> Result<T>,
) -> Result<(T, f64)> {
    let stop = AtomicBool::new(false);
    let (has_run, first_run) = mpsc::channel();
    thread::scope(|scope| {
        let stop = &stop;
        let looping = scope.spawn(move || -> Result<f64> {
            run(neighbour)?;
            let _ = has_run.send(());
            let begin = Instant::now();
            let mut runs = 0u32;
            while runs == 0 || !stop.load(Ordering::Relaxed) {
                run(neighbour)?;
                runs += 1;
            }
            Ok(f64::from(runs) / begin.elapsed().as_secs_f64())
        });
        let measured = {
            let _stop = StopOnDrop(stop);
            // A neighbour that fails never says that it has run; its own error is then the one to report.
            first_run.recv().ok().map(|()| measure())
        };
        let rate = looping.join().map_err(|_| anyhow!("a measuring thread panicked"))??;
        Ok((measured.ok_or_else(|| anyhow!("the neighbour did not start"))??, rate))
    })
}

/// Runs over and over while another thread works. What that gave, and how long each run took in microseconds.
pub(super) fn while_running<T: Send>(
    subject: &impl Launched,
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<(T, Vec<f64>)> {
    thread::scope(|scope| {
        let working = scope.spawn(work);
        let mut times = Vec::new();
        while times.is_empty() || !working.is_finished() {
            times.extend(latencies_us(subject, AtLeast { runs: 1, time: Duration::ZERO })?);
        }
        let worked = working.join().map_err(|_| anyhow!("a measuring thread panicked"))??;
        Ok((worked, times))
    })
}

#[cfg(test)]
pub(super) mod testing {
    use std::sync::atomic::AtomicUsize;

    use anyhow::ensure;

    use super::*;

    /// Counts what is done with it, and fails at one of its launches.
    #[derive(Default)]
    pub(in crate::bench::gpu) struct Counted {
        pub(in crate::bench::gpu) launches: AtomicUsize,
        pub(in crate::bench::gpu) waits: AtomicUsize,
        /// The launch that fails, counted from 1.
        pub(in crate::bench::gpu) fails_at: Option<usize>,
    }

    impl Launched for Counted {
        fn launch(&self) -> Result<()> {
            let number = self.launches.fetch_add(1, Ordering::Relaxed) + 1;
            ensure!(self.fails_at != Some(number), "launch {number} failed");
            Ok(())
        }

        fn wait(&self) -> Result<()> {
            self.waits.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn is_finished(&self) -> Result<bool> {
            Ok(true)
        }
    }

    impl Counted {
        pub(in crate::bench::gpu) fn runs(&self) -> usize {
            self.waits.load(Ordering::Relaxed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Counted;
    use super::*;

    const NO_TIME: Duration = Duration::ZERO;

    #[test]
    fn a_loop_ends_after_enough_runs_and_enough_time() {
        let subject = Counted::default();
        let times = latencies_us(&subject, AtLeast { runs: 7, time: NO_TIME }).unwrap();
        assert_eq!((times.len(), subject.runs()), (7, 7));
        let begin = Instant::now();
        let time = Duration::from_millis(5);
        let times = latencies_us(&subject, AtLeast { runs: 1, time }).unwrap();
        assert!(begin.elapsed() >= time && times.len() > 1);
    }

    #[test]
    fn a_median_is_of_a_few_runs_however_long_they_take() {
        let subject = Counted::default();
        assert!(median_us(&subject, NO_TIME).unwrap() >= 0.0);
        assert_eq!(subject.runs(), WARM_UP_RUNS + MEDIAN_RUNS);
        let failing = Counted { fails_at: Some(WARM_UP_RUNS + 1), ..Default::default() };
        assert!(median_us(&failing, NO_TIME).is_err());
    }

    #[test]
    fn parts_are_together_no_less_than_the_whole() {
        let whole = AtLeast { runs: 10, time: Duration::from_secs(3) };
        let part = whole.share(3);
        assert_eq!((part.runs, part.time), (4, Duration::from_secs(1)));
    }

    #[test]
    fn the_neighbour_runs_before_and_while_something_is_measured() {
        let neighbour = Counted::default();
        let (before, rate) = beside(&neighbour, || {
            let before = neighbour.runs();
            while neighbour.runs() < before + 3 {
                thread::yield_now();
            }
            Ok(before)
        })
        .unwrap();
        assert!(before >= 1 && rate > 0.0);
    }

    #[test]
    fn a_neighbour_that_fails_is_reported() {
        for fails_at in [1, 2] {
            let neighbour = Counted { fails_at: Some(fails_at), ..Default::default() };
            let error = beside(&neighbour, || Ok(())).unwrap_err();
            assert_eq!(error.to_string(), format!("launch {fails_at} failed"));
        }
    }

    #[test]
    fn runs_go_on_as_long_as_somebody_works() {
        let subject = Counted::default();
        let work = || {
            while subject.runs() < 5 {
                thread::yield_now();
            }
            Ok("done")
        };
        let (worked, times) = while_running(&subject, work).unwrap();
        assert_eq!(worked, "done");
        assert!(times.len() >= 5 && times.len() == subject.runs());
        assert!(while_running(&subject, || -> Result<()> { Err(anyhow!("no luck")) }).is_err());
    }

    #[test]
    fn a_measurement_that_fails_ends_the_neighbour() {
        let neighbour = Counted::default();
        let error = beside(&neighbour, || -> Result<()> { Err(anyhow!("no luck")) }).unwrap_err();
        assert_eq!(error.to_string(), "no luck");
    }
}
