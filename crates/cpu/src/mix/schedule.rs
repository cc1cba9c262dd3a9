//! A schedule as the cores of a mix run it: each takes part in its segments, one after another, and waits for what they wait for.

use weft_device::{DeviceError, MixSegment, UnitSet};

use super::draft::{Draft, ReadySegment, Refusal};
use super::ends::Ends;
use crate::{Pool, PoolError, Worker};

/// What a schedule is for.
pub(super) struct Stage<'a> {
    /// How many steps each model has.
    pub(super) step_counts: &'a [usize],
    /// The core of each worker.
    pub(super) cores: &'a UnitSet,
}

/// Segments that were found to be in order.
pub(super) struct Schedule {
    segments: Vec<ReadySegment>,
    /// For each worker, the segments that it takes part in, in order, and its number in each.
    turns: Vec<Vec<(usize, usize)>>,
    ends: Ends,
}

impl Schedule {
    /// Refuses what would run steps twice, out of order or not at all, on no cores, or wait for ever; and fillers, since a core
    /// runs one thing at a time. A model without any segment does not run.
    pub(super) fn new(segments: &[MixSegment], stage: &Stage<'_>) -> Result<Self, DeviceError> {
        if segments.is_empty() {
            return Err(DeviceError::Failed("the schedule has no segments".to_string()));
        }
        let mut draft = Draft::new(stage);
        for (place, segment) in segments.iter().enumerate() {
            draft.add(segment).map_err(|why| match why {
                Refusal::Segment(why) => DeviceError::Failed(format!("segment {place} {why}")),
                Refusal::Device(error) => error,
            })?;
        }
        draft.check_ends().map_err(DeviceError::Failed)?;
        let Draft { ready, turns, .. } = draft;
        Ok(Self { ends: Ends::new(ready.len()), segments: ready, turns })
    }

    /// Whether it runs a model.
    pub(super) fn runs(&self, model: usize) -> bool {
        self.segments.iter().any(|segment| segment.model == model)
    }

    /// In how many parts a model's batch is computed at first; one where it is computed at once throughout.
    pub(super) fn parts(&self, model: usize) -> usize {
        let own = self.segments.iter().filter(|segment| segment.model == model);
        own.filter_map(|segment| segment.part).map(|part| part.number + 1).max().unwrap_or(1)
    }

    /// Runs `body` for each segment on its cores' workers, and waits until all have ended. One run at a time. If a worker
    /// panics, the others leave where they would wait.
    pub(super) fn run(
        &self,
        pool: &Pool,
        body: impl Fn(&ReadySegment, &Worker<'_>) + Sync,
    ) -> Result<(), PoolError> {
        self.ends.reset();
        self.segments.iter().for_each(|segment| segment.team.reset());
        pool.run(|worker| {
            let _breaking = BreakOff(self);
            for &(place, index) in &self.turns[worker.index()] {
                let segment = &self.segments[place];
                for &wait in &segment.waits {
                    self.ends.wait_for(wait, self.segments[wait].team.size());
                }
                segment.team.join(worker, index, |member| body(segment, member));
                self.ends.leave(place);
            }
        })
    }
}

/// Lets nobody wait for a worker that unwinds.
struct BreakOff<'a>(&'a Schedule);

impl Drop for BreakOff<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.segments.iter().for_each(|segment| segment.team.break_up());
            self.0.ends.break_off();
        }
    }
}

#[cfg(test)]
mod tests;
