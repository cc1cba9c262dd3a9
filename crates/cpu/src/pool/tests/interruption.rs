use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::*;

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a test watches that something does not happen.
const WATCHED: Duration = Duration::from_millis(50);

fn wait_until(has_happened: impl Fn() -> bool) {
    let start = Instant::now();
    while !has_happened() {
        assert!(start.elapsed() < PATIENCE, "it never happens");
        std::thread::yield_now();
    }
}

/// A run of short tasks between barriers that goes on until it is told to end.
#[derive(Default)]
struct Tasks {
    done: AtomicUsize,
    is_over: AtomicBool,
}

impl Tasks {
    fn done(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }

    fn run_on(&self, pool: &Pool) -> Result<(), PoolError> {
        let ends = AtomicBool::new(false);
        pool.run(|worker| {
            while !ends.load(Ordering::SeqCst) {
                worker.barrier();
                worker.parallel(5, |_| {
                    self.done.fetch_add(1, Ordering::SeqCst);
                });
                if worker.index() == 0 {
                    ends.store(self.is_over.load(Ordering::SeqCst), Ordering::SeqCst);
                }
                worker.barrier();
            }
        })
    }

    /// Calls `body` while the tasks run on the pool.
    fn run_beside(&self, pool: &Pool, body: impl FnOnce()) {
        std::thread::scope(|scope| {
            let run = scope.spawn(|| self.run_on(pool));
            // Ends the run when an assertion of the body fails, too.
            let end = End(&self.is_over);
            wait_until(|| self.done() > 0);
            body();
            let done = self.done();
            wait_until(|| self.done() > done);
            drop(end);
            run.join().unwrap().unwrap();
        });
    }
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn what_is_interrupted_stands_still_and_goes_on_afterwards() {
    for count in 1..=3 {
        let pool = pool(count);
        let interrupter = pool.interrupter().unwrap();
        assert_eq!(interrupter.workers(), count);
        let tasks = Tasks::default();
        tasks.run_beside(&pool, || {
            let meanwhile = AtomicUsize::new(usize::MAX);
            interrupter
                .run(|worker| {
                    if worker.index() == 0 {
                        let before = tasks.done();
                        std::thread::sleep(WATCHED);
                        meanwhile.store(tasks.done() - before, Ordering::SeqCst);
                    }
                    worker.barrier();
                })
                .unwrap();
            // Each worker may end the task that it was in.
            let meanwhile = meanwhile.into_inner();
            assert!(meanwhile <= count, "{meanwhile} tasks on {count} workers");
        });
    }
}

#[test]
fn an_interruption_that_panics_ends() {
    let pool = pool(2);
    let interrupter = pool.interrupter().unwrap();
    Tasks::default().run_beside(&pool, || {
        let error = interrupter.run(|worker| assert!(worker.index() != 1, "no")).unwrap_err();
        assert_eq!(error, PoolError::Panicked { worker: 1, message: "no".into() });
    });
    Tasks::default().run_beside(&pool, || interrupter.run(|worker| worker.barrier()).unwrap());
}

#[test]
fn what_is_interrupted_may_panic_afterwards() {
    let pool = pool(2);
    let interrupter = pool.interrupter().unwrap();
    let (has_begun, is_broken) = (AtomicBool::new(false), AtomicBool::new(false));
    let outcome = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            pool.run(|worker| {
                loop {
                    worker.parallel(4, |_| {
                        has_begun.store(true, Ordering::SeqCst);
                        assert!(!is_broken.load(Ordering::SeqCst), "broken");
                    });
                }
            })
        });
        wait_until(|| has_begun.load(Ordering::SeqCst));
        interrupter.run(|_| is_broken.store(true, Ordering::SeqCst)).unwrap();
        run.join().unwrap()
    });
    assert!(
        matches!(outcome, Err(PoolError::Panicked { message, .. }) if message.contains("broken"))
    );
    Tasks::default().run_beside(&pool, || interrupter.run(|worker| worker.barrier()).unwrap());
}

#[test]
fn interruptions_follow_one_another() {
    let pool = pool(2);
    let interrupter = pool.interrupter().unwrap();
    let inside = AtomicUsize::new(0);
    Tasks::default().run_beside(&pool, || {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let run = interrupter.run(|worker| {
                            inside.fetch_add(1, Ordering::SeqCst);
                            worker.barrier();
                            assert_eq!(inside.load(Ordering::SeqCst), 2);
                            worker.barrier();
                            inside.fetch_sub(1, Ordering::SeqCst);
                        });
                        run.unwrap();
                    }
                });
            }
        });
    });
}

#[test]
fn a_pool_sleeps_until_the_last_of_its_interrupters_has_ended() {
    let pool = pool(1);
    let (outer, inner) = (pool.interrupter().unwrap(), pool.interrupter().unwrap());
    let tasks = Tasks::default();
    tasks.run_beside(&pool, || {
        let run = outer.run(|_| {
            inner.run(|_| {}).unwrap();
            let before = tasks.done();
            std::thread::sleep(WATCHED);
            assert!(tasks.done() - before <= 1);
        });
        run.unwrap();
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_worker_that_waits_for_others_leaves_its_core_to_an_interruption() {
    let pool = pool(2);
    let interrupter = pool.interrupter().unwrap();
    let (waits, is_over, spent) =
        (AtomicBool::new(false), AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            pool.run(|worker| {
                if worker.index() == 0 {
                    wait_until(|| is_over.load(Ordering::SeqCst));
                    worker.barrier();
                } else {
                    let before = thread_nanoseconds();
                    waits.store(true, Ordering::SeqCst);
                    worker.barrier();
                    let after = thread_nanoseconds();
                    spent.store((after - before) as usize, Ordering::SeqCst);
                }
            })
        });
        wait_until(|| waits.load(Ordering::SeqCst));
        let watch = |worker: &Worker| {
            if worker.index() == 0 {
                std::thread::sleep(10 * WATCHED);
                is_over.store(true, Ordering::SeqCst);
            }
        };
        interrupter.run(watch).unwrap();
        run.join().unwrap().unwrap();
    });
    // One that looks and yields has its share of two cores at least.
    let (spent, watched) = (spent.into_inner(), 10 * WATCHED.as_nanos() as usize);
    assert!(spent < watched / 5, "{spent} of {watched} ns");
}
