//! Launches, kept for as long as somebody wants to see them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use weft_engine::LaunchRecord;

/// Launches of one recording that are kept; later ones are counted and left out.
const MAX_LAUNCHES: usize = 200_000;

/// Passes launches on to a recording, where there is one; costs a load where there is none.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    current: ArcSwapOption<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    launches: Mutex<Vec<LaunchRecord>>,
    left_out: AtomicU64,
}

/// Launches are kept until this is dropped.
pub(crate) struct Recording<'a> {
    recorder: &'a Recorder,
    kept: Arc<Kept>,
}

impl Recorder {
    pub(crate) fn launched(&self, launch: &LaunchRecord) {
        let Some(kept) = &*self.current.load() else { return };
        let mut launches = kept.launches.lock().unwrap_or_else(PoisonError::into_inner);
        if launches.len() < MAX_LAUNCHES {
            launches.push(*launch);
        } else {
            kept.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Begins to record; `None` while another recording goes on.
    pub(crate) fn record(&self) -> Option<Recording<'_>> {
        let kept = Arc::<Kept>::default();
        let before = self.current.compare_and_swap(&None::<Arc<Kept>>, Some(kept.clone()));
        before.is_none().then(|| Recording { recorder: self, kept })
    }
}

impl Recording<'_> {
    /// What was launched since it began, and how many launches were left out.
    pub(crate) fn finish(self) -> (Vec<LaunchRecord>, u64) {
        let mut launches = self.kept.launches.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut *launches), self.kept.left_out.load(Ordering::Relaxed))
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.recorder.current.store(None);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use weft_engine::ModelKey;
    use weft_scheduler::UnitMask;

    use super::*;

    #[test]
    fn one_recording_goes_on_at_a_time_and_is_limited() {
        let recorder = Recorder::default();
        let launch = LaunchRecord {
            model: ModelKey::unused(),
            partition: 0,
            is_background: false,
            units: UnitMask::range(0, 1),
            rows: 1,
            tenants: 1,
            is_fused: false,
            is_mixed: false,
            started: Instant::now(),
            took: Duration::ZERO,
            paused: Duration::ZERO,
            expected: Duration::ZERO,
        };
        recorder.launched(&launch);
        let recording = recorder.record().unwrap();
        assert!(recorder.record().is_none());
        (0..MAX_LAUNCHES + 3).for_each(|_| recorder.launched(&launch));
        let (launches, left_out) = recording.finish();
        assert_eq!((launches.len(), left_out), (MAX_LAUNCHES, 3));
        recorder.launched(&launch);
        assert_eq!(recorder.record().unwrap().finish().0.len(), 0);
    }
}
