//! Owns teams: some workers of a run who do a part of it together, while the others do something else.

use super::Worker;
use super::barrier::Barrier;

/// Where the workers of one team meet.
pub(crate) struct Team(Barrier);

impl Team {
    pub(crate) fn new(size: usize) -> Self {
        Self(Barrier::new(size))
    }

    /// How many workers it has.
    pub(crate) fn size(&self) -> usize {
        self.0.count()
    }

    /// Prepares for a new run; no worker may be in the team.
    pub(crate) fn reset(&self) {
        self.0.reset();
    }

    /// Runs `body` as the team's worker of this number. All its workers make the same call, once in a run.
    pub(crate) fn join(&self, worker: &Worker<'_>, index: usize, body: impl FnOnce(&Worker<'_>)) {
        worker.among(&self.0, index, body);
        self.0.leave();
    }

    /// Makes workers leave the run who wait for others of the team, which cannot come.
    pub(crate) fn break_up(&self) {
        self.0.poison();
    }
}
