//! Loading of machine code and timing take turns. The driver loads code once the GPU has done all that it was given, and until
//! then nobody can give it more: who loads beside what is timed waits for all of it, and holds everybody else up.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Loads that come within this time of the last ones wait for each other, so that they stop what is timed once.
const INTERVAL: Duration = Duration::from_millis(40);

/// Who may use the GPU now: those that time something, or one that loads.
#[derive(Debug, Default)]
pub(crate) struct LoadGate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Those that time something.
    timing: usize,
    /// Those that load as soon as nobody does.
    waiting: usize,
    is_loading: bool,
    last_load: Option<Instant>,
}

/// Keeps loads away until it is dropped.
#[derive(Debug)]
pub(crate) struct Timing<'a>(&'a LoadGate);

/// Keeps everybody else away.
struct Loading<'a>(&'a LoadGate);

impl LoadGate {
    /// Waits until nothing is loaded. Whoever holds what this gives must load nothing.
    pub(crate) fn time(&self) -> Timing<'_> {
        let mut state = self.lock();
        while state.waiting > 0 || state.is_loading {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.timing += 1;
        Timing(self)
    }

    /// Loads something while nothing is timed, as soon as that comes to an end; nothing more is begun until then.
    pub(crate) fn load<T>(&self, load: impl FnOnce() -> T) -> T {
        let _loading = self.begin_loading();
        load()
    }

    fn begin_loading(&self) -> Loading<'_> {
        let mut state = self.lock();
        while state.timing > 0
            && let Some(left) =
                state.last_load.and_then(|last| INTERVAL.checked_sub(last.elapsed()))
        {
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.waiting += 1;
        while state.timing > 0 || state.is_loading {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting -= 1;
        state.is_loading = true;
        Loading(self)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Timing<'_> {
    fn drop(&mut self) {
        self.0.lock().timing -= 1;
        self.0.changed.notify_all();
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_loading = false;
        state.last_load = Some(Instant::now());
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::thread;

    use super::*;

    #[test]
    fn nothing_is_timed_while_something_is_loaded() {
        let (gate, timing, loading) =
            (LoadGate::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _timing = gate.time();
                        timing.fetch_add(1, SeqCst);
                        assert_eq!(loading.load(SeqCst), 0);
                        thread::yield_now();
                        timing.fetch_sub(1, SeqCst);
                    }
                });
            }
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        gate.load(|| {
                            assert_eq!(loading.fetch_add(1, SeqCst), 0, "one loads at a time");
                            assert_eq!(timing.load(SeqCst), 0);
                            thread::yield_now();
                            loading.fetch_sub(1, SeqCst);
                        });
                    }
                });
            }
        });
        assert_eq!(gate.lock().waiting, 0);
    }

    #[test]
    fn loads_that_come_soon_after_others_stop_what_is_timed_once() {
        let gate = LoadGate::default();
        gate.load(|| ());
        let timing = gate.time();
        let last = gate.lock().last_load.unwrap();
        let ended = thread::scope(|scope| {
            let loads: Vec<_> =
                (0..2).map(|_| scope.spawn(|| gate.load(|| last.elapsed()))).collect();
            while last.elapsed() < INTERVAL / 2 {
                thread::yield_now();
            }
            let waiting = gate.lock().waiting;
            // A machine that was busy with something else meanwhile tells nothing.
            assert!(waiting == 0 || last.elapsed() >= INTERVAL, "others may still begin to time");
            while gate.lock().waiting < 2 {
                thread::yield_now();
            }
            assert!(last.elapsed() >= INTERVAL);
            drop(timing);
            loads.into_iter().map(|load| load.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(ended.iter().all(|elapsed| *elapsed >= INTERVAL));
    }

    #[test]
    fn a_load_that_panics_leaves_the_gate_open() {
        let gate = LoadGate::default();
        let load = std::panic::AssertUnwindSafe(|| gate.load(|| panic!("it does not load")));
        assert!(std::panic::catch_unwind(load).is_err());
        drop(gate.time());
        assert_eq!(gate.load(|| 7), 7);
    }
}
