//! Who needs a service: locks of files, which the operating system lets go of when a process dies.
//!
//! Everybody who needs the service holds a shared lock of one file. Who comes or goes does so under the lock of another, one at
//! a time: the first finds nothing that answers and starts it, and the last gets the shared lock for itself and ends it.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::io::{FdFlags, fcntl_setfd};

/// One of those who need the service.
pub(super) struct Holder {
    folder: PathBuf,
    held: File,
}

impl Holder {
    /// From now on the service is needed: `ensure` starts it, unless it is there.
    pub(super) fn join(folder: &Path, ensure: impl FnOnce() -> Result<()>) -> Result<Self> {
        let _turn = turn(folder)?;
        let held = share(folder)?;
        ensure()?;
        Ok(Self { folder: folder.to_path_buf(), held })
    }

    /// The need once more, for a program that is started while this is open, as long as it lives.
    pub(super) fn for_program(&self) -> Result<File> {
        let held = share(&self.folder)?;
        fcntl_setfd(&held, FdFlags::empty()).context("cannot hand on the lock of the service")?;
        Ok(held)
    }

    /// The need ends; `end` is called where nobody else has it.
    pub(super) fn leave(self, end: impl FnOnce() -> Result<()>) -> Result<()> {
        let Self { folder, held } = self;
        let _turn = turn(&folder)?;
        drop(held);
        match open(&folder, "users.lock")?.try_lock() {
            Ok(()) => end(),
            Err(TryLockError::WouldBlock) => Ok(()),
            Err(TryLockError::Error(error)) => Err(error).context("cannot lock the service"),
        }
    }
}

fn share(folder: &Path) -> Result<File> {
    let file = open(folder, "users.lock")?;
    file.lock_shared().context("cannot lock the service")?;
    Ok(file)
}

/// The turn to come or to go.
fn turn(folder: &Path) -> Result<File> {
    let file = open(folder, "turn.lock")?;
    file.lock().context("cannot lock the service")?;
    Ok(file)
}

fn open(folder: &Path, name: &str) -> Result<File> {
    let path = folder.join(name);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    file.with_context(|| format!("cannot open {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::process::{Command, Stdio};

    use super::*;

    /// A service that counts its starts and its ends.
    #[derive(Default)]
    struct Service {
        is_there: Cell<bool>,
        starts: Cell<u32>,
    }

    impl Service {
        fn join(&self, folder: &Path) -> Holder {
            let ensure = || {
                if !self.is_there.replace(true) {
                    self.starts.set(self.starts.get() + 1);
                }
                Ok(())
            };
            Holder::join(folder, ensure).unwrap()
        }

        fn leave(&self, holder: Holder) {
            holder
                .leave(|| {
                    self.is_there.set(false);
                    Ok(())
                })
                .unwrap();
        }
    }

    #[test]
    fn the_first_starts_it_and_the_last_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let service = Service::default();
        let first = service.join(folder.path());
        let second = service.join(folder.path());
        service.leave(first);
        assert!(service.is_there.get(), "the second still needs it");
        let third = service.join(folder.path());
        service.leave(third);
        service.leave(second);
        assert!(!service.is_there.get());
        let again = service.join(folder.path());
        assert_eq!(service.starts.get(), 2);
        service.leave(again);
    }

    #[test]
    fn who_died_needs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let service = Service::default();
        let first = service.join(folder.path());
        // All that a killed process does: its files are closed.
        drop(service.join(folder.path()));
        service.leave(first);
        assert!(!service.is_there.get());
    }

    #[test]
    fn a_program_that_outlives_its_parent_still_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let service = Service::default();
        let parent = service.join(folder.path());
        let lock = share(folder.path()).unwrap();
        let mut program =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::from(lock)).spawn().unwrap();
        service.leave(parent);
        assert!(service.is_there.get(), "the program lives");
        program.kill().unwrap();
        program.wait().unwrap();
        service.leave(service.join(folder.path()));
        assert!(!service.is_there.get());
        assert_eq!(service.starts.get(), 1);
    }

    #[test]
    fn what_cannot_be_started_is_needed_by_nobody() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Holder::join(folder.path(), || anyhow::bail!("no")).is_err());
        let service = Service::default();
        service.leave(service.join(folder.path()));
        assert!(!service.is_there.get());
    }
}
