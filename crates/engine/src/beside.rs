//! Work beside what is served: on threads that let those who serve go first.

use std::io;
use std::thread::{Builder, JoinHandle};

use rustix::process::setpriority_process;

/// How far such a thread steps back: a tenth of what a thread that serves gets, where both want the same core.
const NICE: i32 = 10;

/// Does some work on a thread of its own, which lets others go first, as do the threads that it starts.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(move || {
        // Where that is refused, it works like any other thread.
        let _ = setpriority_process(None, NICE);
        work()
    })
}
