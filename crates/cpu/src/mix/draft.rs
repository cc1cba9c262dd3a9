//! A schedule while it is made: segments are checked, and cut into what each core runs of them.

use std::ops::Range;

use weft_device::{DeviceError, MixChunks, MixSegment, UnitSet};

use super::schedule::Stage;
use crate::pool::Team;

/// A segment of the whole batch or of a part of it, and those who run it.
pub(super) struct ReadySegment {
    pub(super) model: usize,
    pub(super) part: Option<Part>,
    pub(super) steps: Range<usize>,
    /// Those that must have ended before.
    pub(super) waits: Vec<usize>,
    pub(super) team: Team,
}

/// A part of a model's batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Which one it is.
    pub(super) number: usize,
    /// It is put together with the others when the segment ends.
    pub(super) is_last: bool,
}

/// Why a segment is not run.
pub(super) enum Refusal {
    /// As a sentence goes on that begins with the segment.
    Segment(String),
    Device(DeviceError),
}

/// The segments so far.
pub(super) struct Draft<'a> {
    stage: &'a Stage<'a>,
    progress: Vec<Progress>,
    /// For each segment, what it became.
    became: Vec<Range<usize>>,
    pub(super) ready: Vec<ReadySegment>,
    /// For each worker, the segments that it takes part in, in order, and its number in each.
    pub(super) turns: Vec<Vec<(usize, usize)>>,
}

/// How far a model's segments have come.
#[derive(Clone, Default)]
struct Progress {
    done: usize,
    /// How many chunks all of its segments are in, and until which step.
    chunks: Option<(usize, usize)>,
    /// The place of its last segment.
    last: Option<usize>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(stage: &'a Stage<'a>) -> Self {
        Self {
            stage,
            progress: vec![Progress::default(); stage.step_counts.len()],
            became: Vec::new(),
            ready: Vec::new(),
            turns: vec![Vec::new(); stage.cores.len()],
        }
    }

    /// Adds a segment, which begins after the one before it of its model: parts of it, and what is computed at once.
    pub(super) fn add(&mut self, segment: &MixSegment) -> Result<(), Refusal> {
        let before = self.take(segment).map_err(Refusal::Segment)?;
        if segment.units.is_empty() {
            return Err(Refusal::Device(DeviceError::NoUnits));
        }
        let first = self.ready.len();
        let waits = segment.waits.iter().copied().chain(before);
        let mut waits: Vec<usize> = waits.flat_map(|wait| self.became[wait].clone()).collect();
        waits.sort_unstable();
        waits.dedup();
        let MixSegment { model, ref steps, .. } = *segment;
        let mut at_once = steps.clone();
        if let Some(MixChunks { count, until, shares }) = &segment.chunks {
            at_once.start = (*until).clamp(steps.start, steps.end);
            let chunked = steps.start..at_once.start;
            let is_last = at_once.start == *until;
            for number in (0..*count).filter(|_| !chunked.is_empty()) {
                let share = &shares[number % shares.len()];
                let (steps, waits, team) = (chunked.clone(), waits.clone(), Team::new(share.len()));
                let part = Some(Part { number, is_last });
                self.push(ReadySegment { model, part, steps, waits, team }, share)?;
            }
        }
        if !at_once.is_empty() {
            waits.extend(first..self.ready.len());
            let team = Team::new(segment.units.len());
            let ready = ReadySegment { model, part: None, steps: at_once, waits, team };
            self.push(ready, &segment.units)?;
        }
        self.became.push(first..self.ready.len());
        Ok(())
    }

    /// Why a model would not run to its end, where one does not that has begun.
    pub(super) fn check_ends(&self) -> Result<(), String> {
        let models = self.progress.iter().zip(self.stage.step_counts).enumerate();
        for (model, (Progress { done, .. }, step_count)) in models {
            if *done != 0 && done != step_count {
                return Err(format!("steps {done} to {step_count} of model {model} do not run"));
            }
        }
        Ok(())
    }

    /// Takes a model's next segment, and says which one was before it.
    fn take(&mut self, segment: &MixSegment) -> Result<Option<usize>, String> {
        let MixSegment { model, steps, chunks, units, is_filler, waits } = segment;
        let place = self.became.len();
        if *is_filler {
            return Err("fills what others leave, which a core does not do".to_string());
        }
        let (Some(own), Some(&step_count)) =
            (self.progress.get_mut(*model), self.stage.step_counts.get(*model))
        else {
            return Err(format!("is of model {model}, which there is not"));
        };
        if steps.is_empty() || steps.end > step_count {
            return Err(format!("has steps {steps:?} of model {model}, which has {step_count}"));
        }
        if steps.start != own.done {
            let (first, next) = (steps.start, own.done);
            return Err(format!("begins at step {first} of model {model}, whose next is {next}"));
        }
        if let Some(MixChunks { count, until, shares }) = chunks {
            let is_own = |share: &UnitSet| {
                let mut cores = share.iter();
                !share.is_empty() && cores.all(|core| units.as_slice().contains(&core))
            };
            if *count < 2 || *until > step_count {
                return Err(format!("has {count} chunks until step {until} of {step_count}"));
            }
            if shares.is_empty() || !shares.iter().all(is_own) {
                return Err("has chunks on units that are not its own".to_string());
            }
        }
        let form = chunks.as_ref().map(|chunks| (chunks.count, chunks.until));
        if own.last.is_some() && form != own.chunks {
            return Err(format!("is in other chunks than what is before it of model {model}"));
        }
        if let Some(wait) = waits.iter().find(|&&wait| wait >= place) {
            return Err(format!("waits for segment {wait}, which is not before it"));
        }
        (own.done, own.chunks) = (steps.end, form);
        Ok(own.last.replace(place))
    }

    /// Adds what these cores run next.
    fn push(&mut self, ready: ReadySegment, cores: &UnitSet) -> Result<(), Refusal> {
        let all = self.stage.cores;
        for (index, core) in cores.iter().enumerate() {
            let worker = all.as_slice().binary_search(&core).map_err(|_| {
                let available = all.to_string();
                Refusal::Device(DeviceError::NoSuchUnit { unit: core, available })
            })?;
            self.turns[worker].push((self.ready.len(), index));
        }
        self.ready.push(ready);
        Ok(())
    }
}
