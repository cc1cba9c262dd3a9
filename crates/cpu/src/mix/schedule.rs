//! A schedule as the cores of a mix run it: each takes part in its segments, one after another, and waits for what they wait for.

use std::ops::Range;

use weft_device::{DeviceError, MixSegment, UnitSet};

use super::ends::Ends;
use crate::pool::Team;
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

/// A segment, and those who run it.
pub(super) struct ReadySegment {
    pub(super) model: usize,
    pub(super) steps: Range<usize>,
    waits: Vec<usize>,
    team: Team,
}

impl Schedule {
    /// Refuses what would run steps twice, out of order or not at all, on no cores, or wait for ever; and chunks and fillers,
    /// since a core runs one thing at a time. A model without any segment does not run.
    pub(super) fn new(segments: &[MixSegment], stage: &Stage<'_>) -> Result<Self, DeviceError> {
        let failed = |why: String| Err(DeviceError::Failed(why));
        if segments.is_empty() {
            return failed("the schedule has no segments".to_string());
        }
        let mut done = vec![0; stage.step_counts.len()];
        let mut last_of_model: Vec<Option<usize>> = vec![None; stage.step_counts.len()];
        let mut turns = vec![Vec::new(); stage.cores.len()];
        let mut ready = Vec::with_capacity(segments.len());
        for (place, segment) in segments.iter().enumerate() {
            let MixSegment { model, steps, chunks, units: cores, is_filler, waits } = segment;
            if chunks.is_some() {
                return failed(format!(
                    "segment {place} is in chunks, which a CPU does not compute"
                ));
            }
            if *is_filler {
                return failed(format!(
                    "segment {place} fills what others leave, which a core does not do"
                ));
            }
            let Some(&step_count) = stage.step_counts.get(*model) else {
                return failed(format!("segment {place} is of model {model}, which there is not"));
            };
            if steps.is_empty() || steps.end > step_count {
                return failed(format!(
                    "segment {place} has steps {steps:?} of model {model}, which has {step_count}"
                ));
            }
            if steps.start != done[*model] {
                return failed(format!(
                    "segment {place} begins at step {} of model {model}, whose next is {}",
                    steps.start, done[*model]
                ));
            }
            if cores.is_empty() {
                return Err(DeviceError::NoUnits);
            }
            if let Some(wait) = waits.iter().find(|&&wait| wait >= place) {
                return failed(format!(
                    "segment {place} waits for segment {wait}, which is not before it"
                ));
            }
            for (index, core) in cores.iter().enumerate() {
                let worker = stage.cores.as_slice().binary_search(&core).map_err(|_| {
                    DeviceError::NoSuchUnit { unit: core, available: stage.cores.to_string() }
                })?;
                turns[worker].push((place, index));
            }
            done[*model] = steps.end;
            let own = last_of_model[*model].replace(place);
            let mut waits: Vec<usize> = waits.iter().copied().chain(own).collect();
            waits.sort_unstable();
            waits.dedup();
            let (steps, team) = (steps.clone(), Team::new(cores.len()));
            ready.push(ReadySegment { model: *model, steps, waits, team });
        }
        for (model, (&end, &step_count)) in done.iter().zip(stage.step_counts).enumerate() {
            if end != 0 && end != step_count {
                return failed(format!("steps {end} to {step_count} of model {model} do not run"));
            }
        }
        Ok(Self { ends: Ends::new(ready.len()), segments: ready, turns })
    }

    /// Whether it runs a model.
    pub(super) fn runs(&self, model: usize) -> bool {
        self.segments.iter().any(|segment| segment.model == model)
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
