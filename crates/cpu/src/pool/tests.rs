use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

mod interruption;

fn pool(count: usize) -> Pool {
    Pool::unpinned(count, Isa::Portable).unwrap()
}

#[test]
fn tasks_run_once_each_and_are_seen_after_the_loop() {
    for count in 1..=4 {
        let pool = pool(count);
        for round in 0..20 {
            let claimed: Vec<AtomicUsize> = (0..round * 7).map(|_| AtomicUsize::new(0)).collect();
            let visits = AtomicUsize::new(0);
            pool.run(|worker| {
                assert_eq!(worker.count(), count);
                visits.fetch_add(1 << (8 * worker.index()), Ordering::Relaxed);
                for pass in 1..=5 {
                    worker.parallel(claimed.len(), |task| {
                        claimed[task].fetch_add(1, Ordering::Relaxed);
                    });
                    assert!(claimed.iter().all(|times| times.load(Ordering::Relaxed) == pass));
                    worker.barrier();
                }
            })
            .unwrap();
            let expected: usize = (0..count).map(|index| 1 << (8 * index)).sum();
            assert_eq!(visits.load(Ordering::Relaxed), expected);
        }
    }
}

#[test]
fn callers_from_many_threads_take_turns() {
    let pool = pool(2);
    let inside = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    pool.run(|worker| {
                        inside.fetch_add(1, Ordering::SeqCst);
                        worker.barrier();
                        assert_eq!(inside.load(Ordering::SeqCst), 2);
                        worker.barrier();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    })
                    .unwrap();
                }
            });
        }
    });
}

#[test]
fn a_panic_ends_the_run_everywhere_and_the_pool_lives_on() {
    let pool = pool(3);
    for culprit in 0..3 {
        let error = pool
            .run(|worker| {
                worker.parallel(10, |_| {});
                assert!(worker.index() != culprit, "culprit {culprit}");
                worker.barrier();
                unreachable!("the barrier is poisoned");
            })
            .unwrap_err();
        assert_eq!(
            error,
            PoolError::Panicked { worker: culprit, message: format!("culprit {culprit}") }
        );
        let error = pool
            .run(|worker| worker.parallel(100, |task| assert!(task != 50, "task 50")))
            .unwrap_err();
        assert!(matches!(error, PoolError::Panicked { message, .. } if message == "task 50"));
        pool.run(|worker| worker.parallel(10, |_| {})).unwrap();
    }
}

#[test]
fn mistakes_of_the_closure_are_errors_and_not_deadlocks() {
    let pool = pool(2);
    type Body = fn(&Worker);
    let cases: [(&str, Body); 3] = [
        ("left the run", |worker| {
            if worker.index() == 0 {
                worker.barrier();
            }
        }),
        ("cannot start another", |worker| worker.parallel(2, |_| worker.parallel(1, |_| {}))),
        ("cannot wait", |worker| worker.parallel(2, |_| worker.barrier())),
    ];
    for (expected, body) in cases {
        let error = pool.run(body).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let nested = Mutex::new(None);
    pool.run(|worker| {
        if worker.index() == 0 {
            *nested.lock().unwrap() = Some(pool.run(|_| {}));
        }
    })
    .unwrap();
    assert_eq!(nested.into_inner().unwrap(), Some(Err(PoolError::Nested)));
}

#[test]
fn cores_must_exist_and_differ() {
    let core = core_affinity::get_core_ids().unwrap()[0].id;
    assert_eq!(Pool::new(&[], Isa::Portable).unwrap_err(), PoolError::Empty);
    assert_eq!(Pool::new(&[core, core], Isa::Portable).unwrap_err(), PoolError::Duplicate { core });
    for core in [CORE_LIMIT - 1, CORE_LIMIT, usize::MAX] {
        assert_eq!(Pool::new(&[core], Isa::Portable).unwrap_err(), PoolError::Pin { core });
    }
    let pool = Pool::new(&[core], Isa::Portable).unwrap();
    let allowed = Mutex::new(Vec::new());
    pool.run(|_| *allowed.lock().unwrap() = core_affinity::get_core_ids().unwrap()).unwrap();
    assert_eq!(allowed.into_inner().unwrap(), [core_affinity::CoreId { id: core }]);
}

#[test]
fn scratch_is_aligned_reused_and_never_shared() {
    let worker = Worker::solo(Isa::Portable);
    let first = {
        let mut outer = worker.scratch(100);
        let mut inner = worker.scratch(40);
        outer.fill(1.0);
        inner.fill(2.0);
        assert!(outer.iter().all(|&value| value == 1.0));
        assert_eq!((outer.len(), inner.len()), (100, 40));
        assert_eq!(outer.as_ptr() as usize % 64, 0);
        outer.as_ptr()
    };
    assert_eq!(worker.scratch(60).as_ptr(), first);
    assert_eq!(worker.scratch(5000).len(), 5000);
}

/// CPU time that the calling thread has used.
#[cfg(target_os = "linux")]
fn thread_nanoseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[test]
#[cfg(target_os = "linux")]
fn an_idle_pool_uses_no_processor_time() {
    let pool = pool(2);
    let used = || {
        let used = AtomicUsize::new(0);
        pool.run(|_| {
            used.fetch_add(thread_nanoseconds() as usize, Ordering::Relaxed);
        })
        .unwrap();
        used.into_inner()
    };
    let before = used();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let spent = used() - before;
    assert!(spent < 30_000_000, "{spent} ns of 300 ms");
}

#[test]
#[cfg(target_os = "linux")]
fn a_background_pool_leaves_its_core_to_others() {
    use std::sync::atomic::AtomicBool;

    let core = core_affinity::get_core_ids().unwrap()[0].id;
    let background = Pool::with_priority(&[core], Isa::Portable, Priority::Background).unwrap();
    let normal = Pool::new(&[core], Isa::Portable).unwrap();
    let (is_over, behind) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            background.run(|_| {
                while !is_over.load(Ordering::Relaxed) {
                    behind.store(thread_nanoseconds() as usize, Ordering::Relaxed);
                }
            })
        });
        while behind.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        normal
            .run(|_| {
                let before = behind.load(Ordering::Relaxed);
                let start = thread_nanoseconds();
                while thread_nanoseconds() - start < 50_000_000 {}
                let taken = behind.load(Ordering::Relaxed) - before;
                assert!(taken < 10_000_000, "{taken} ns beside 50 ms");
            })
            .unwrap();
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_panic_on_the_calling_thread_is_an_error() {
    let outcome = Pool::run_alone(Isa::Portable, |worker| {
        assert_eq!((worker.index(), worker.count()), (0, 1));
        panic!("no");
    });
    assert_eq!(outcome, Err(PoolError::Panicked { worker: 0, message: "no".into() }));
}
