//! A repository looked at again and again.
//!
//! Looking at an interval, and not being told by the kernel, works wherever folders can be read: on network file systems,
//! whose other writers no kernel hears of, on mounted volumes that are swapped as a whole, and in containers that have used
//! up their watches. A look lists folders and reads the small texts; it opens no model.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::repository::Repository;
use crate::scan::ScanError;

/// How long to wait between two looks, where nobody says otherwise.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);

/// The states of a repository from one on, as they come. Each call of `next` waits until something is different.
///
/// A model is taken when two looks in a row find the same of it, so that one which is still being copied is not; the others
/// are taken meanwhile. What was served and is broken now stays as it was, with its problems listed. A folder that cannot be
/// read at all is an error, said once, and changes nothing.
pub struct Watch<L, W> {
    look: L,
    wait: W,
    interval: Duration,
    taken: Repository,
    last_look: Repository,
    last_error: Option<ScanError>,
}

impl<L, W> Watch<L, W>
where
    L: FnMut() -> Result<Repository, ScanError>,
    W: FnMut(Duration) -> ControlFlow<()>,
{
    /// Watches on from a state. `look` reads the repository; `wait` lets the interval pass, or ends the watch.
    pub fn new(from: Repository, interval: Duration, look: L, wait: W) -> Self {
        Self { look, wait, interval, last_look: from.clone(), taken: from, last_error: None }
    }

    /// What one look makes of the state; `None` where it stays as it is.
    fn look_once(&mut self) -> Option<Result<Repository, ScanError>> {
        let look = match (self.look)() {
            Ok(look) => look,
            Err(error) => {
                let is_new = self.last_error.as_ref() != Some(&error);
                self.last_error = Some(error.clone());
                return is_new.then_some(Err(error));
            }
        };
        self.last_error = None;
        let settled = settled(&self.taken, &self.last_look, look.clone());
        self.last_look = look;
        (settled != self.taken).then(|| {
            self.taken = settled;
            Ok(self.taken.clone())
        })
    }
}

impl<L, W> Iterator for Watch<L, W>
where
    L: FnMut() -> Result<Repository, ScanError>,
    W: FnMut(Duration) -> ControlFlow<()>,
{
    type Item = Result<Repository, ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if (self.wait)(self.interval).is_break() {
                return None;
            }
            if let Some(outcome) = self.look_once() {
                return Some(outcome);
            }
        }
    }
}

/// What was taken, with all that the last two looks agree on.
fn settled(taken: &Repository, last: &Repository, look: Repository) -> Repository {
    let mut next = look;
    let is_stable =
        |name: &String, next: &Repository| last.entries.get(name) == next.entries.get(name);
    let names = taken.entries.keys().chain(last.entries.keys()).chain(next.entries.keys());
    let unstable: Vec<String> = names.filter(|name| !is_stable(name, &next)).cloned().collect();
    for name in unstable {
        match taken.entries.get(&name) {
            Some(entry) => next.entries.insert(name, entry.clone()),
            None => next.entries.remove(&name),
        };
    }
    if last.settings != next.settings {
        next.settings = taken.settings.clone();
    }
    next.keeping_what_worked(taken)
}

#[cfg(test)]
mod tests;
