//! What became of a model's requests: counts and durations, as the statistics extension has them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weft_engine::Answer;

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// How often something happened, and how long it took in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) count: u64,
    pub(crate) time: Duration,
}

impl Total {
    fn add(&mut self, time: Duration) {
        self.count += 1;
        self.time += time;
    }
}

/// All that is counted of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// From a request's arrival to its answer.
    pub(crate) succeeded: Total,
    /// Likewise, where there was none but an error.
    pub(crate) failed: Total,
    /// From a request's arrival until its batch began.
    pub(crate) queued: Total,
    /// How long the batches took that answered requests were in.
    pub(crate) ran: Total,
    /// Entries of the batches of answered requests.
    pub(crate) rows: u64,
    /// Executions by their number of entries.
    pub(crate) executions: BTreeMap<u32, Total>,
    /// Milliseconds since 1970 at the last answer.
    pub(crate) last_ms: u64,
}

/// The counts of one model, as they grow.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    counts: Mutex<Counts>,
}

impl Statistics {
    /// A request was answered.
    pub(crate) fn succeeded(&self, rows: usize, took: Duration, answer: &Answer) {
        let mut counts = self.lock();
        counts.succeeded.add(took);
        counts.queued.add(answer.queued);
        counts.ran.add(answer.ran);
        counts.rows += rows as u64;
        counts.last_ms = now_ms();
    }

    /// A request was not.
    pub(crate) fn failed(&self, took: Duration) {
        self.lock().failed.add(took);
    }

    /// A batch has run; one whose requests were all cancelled is none.
    pub(crate) fn executed(&self, rows: u32, took: Duration) {
        if rows > 0 {
            self.lock().executions.entry(rows).or_default().add(took);
        }
    }

    /// What was counted so far.
    pub(crate) fn counts(&self) -> Counts {
        self.lock().clone()
    }

    /// Milliseconds since 1970 at the last answer; 0 where there was none.
    pub(crate) fn last_ms(&self) -> u64 {
        self.lock().last_ms
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// How many batches have run.
    pub(crate) fn execution_count(&self) -> u64 {
        self.executions.values().map(|total| total.count).sum()
    }
}
