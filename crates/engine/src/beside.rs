//! Work beside what is served: on threads that let those who serve go first.

use std::io;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder, JoinHandle, available_parallelism};

use rustix::process::setpriority_process;

/// How far such a thread steps back: a tenth of what a thread that serves gets, where both want the same core.
const NICE: i32 = 10;

/// More threads than these that make something ready would wait for each other.
const MOST_THREADS: usize = 8;

/// Does some work on a thread of its own, which lets others go first, as do the threads that it starts.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(move || {
        step_back();
        work()
    })
}

/// Does some work on such a thread and waits for it: the caller goes on as what it was, and so do threads that it starts.
pub(crate) fn wait_for<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = Builder::new().name(name.into()).spawn_scoped(scope, || {
            step_back();
            work()
        })?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

fn step_back() {
    // Where that is refused, the thread works like any other.
    let _ = setpriority_process(None, NICE);
}

/// How many such threads do something soonest where nobody is served.
pub(crate) fn thread_count() -> usize {
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    (cores / 2).clamp(1, MOST_THREADS)
}

/// Does the same work on each of some items, on so many such threads, and waits for all of it. What comes of the items is in
/// their order.
pub(crate) fn spawn_all<I: Send + 'static, T: Send + 'static>(
    name: &str,
    thread_count: usize,
    items: Vec<I>,
    work: impl Fn(I) -> T + Send + Sync + 'static,
) -> io::Result<Vec<T>> {
    let thread_count = thread_count.max(1).min(items.len());
    let waiting = Arc::new(Mutex::new(items.into_iter().enumerate()));
    let work = Arc::new(work);
    let start = |_| {
        let (waiting, work) = (waiting.clone(), work.clone());
        spawn(name, move || {
            let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
            let mut done = Vec::new();
            while let Some((place, item)) = next() {
                done.push((place, work(item)));
            }
            done
        })
    };
    let threads = (0..thread_count).map(start).collect::<io::Result<Vec<_>>>()?;
    let mut done: Vec<(usize, T)> = Vec::new();
    for thread in threads {
        done.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
    }
    done.sort_by_key(|(place, _)| *place);
    Ok(done.into_iter().map(|(_, done)| done).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_of_items_is_in_their_order() {
        let squares = spawn_all("squares", 3, (0..100u64).collect(), |number| number * number);
        assert_eq!(squares.unwrap(), (0..100).map(|number| number * number).collect::<Vec<_>>());
        assert!(spawn_all("nothing", 3, Vec::<u64>::new(), |number| number).unwrap().is_empty());
    }
}
