//! Regulation beside what is served: piece by piece, each in a moment in which nothing waits and nothing runs.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use weft_device::{Device, DeviceError, MixMember, UnitSet};
use weft_ir::Dimensions;
use weft_scheduler::regulate::Strategy;
use weft_scheduler::{MixId, NoMix, UnitMask};

use super::known_schedules::{FoundSchedule, KnownSchedules};
use super::memory::{MixMemory, MixShare, NoRoom};
use super::ready_mix::ReadyMix;
use crate::beside;
use crate::clock::span;
use crate::model::{EngineModel, ModelKey};
use crate::profiling::inputs;
use crate::regulation::{
    RegulatedMix, RegulatedModel, Regulation, RegulationOptions, likeness, read_stages,
    write_stages,
};
use crate::service::{Generation, Message};
use crate::shared::Shared;

/// How much of the device's time the search for one mix may take, after its steps were timed.
const SEARCH_TIME: Duration = Duration::from_secs(1);

/// How long a piece of work should take that is cut at will.
const PIECE: Duration = Duration::from_millis(2);

/// A piece that holds nobody up takes this share of the tightest objective at most; so many may take longer before it is given up.
const SHARE_OF_OBJECTIVE: f64 = 0.5;
const MAX_OVERLONG: usize = 4;

/// After a piece the device is left alone for so many times as long, up to a limit, so that few requests find one under way.
const REST_TIMES: u32 = 3;
const LONGEST_REST: Duration = Duration::from_millis(100);

/// Rounds in which what was found takes turns with one model after another, and runs as requests have it.
const ROUNDS: usize = 3;

/// A mix is faster than its models one after another by at least this share, or is of no use.
const LEAST_GAIN: f64 = 0.02;

/// A mix that somebody wants to be regulated.
pub(crate) struct WantedMix {
    pub(crate) mix: MixId,
    pub(crate) units: UnitMask,
    /// With the size of each one's batch.
    pub(crate) models: Vec<(EngineModel, u32)>,
    /// Whether requests that come meanwhile may be late for it.
    pub(crate) may_hold_up: bool,
    /// Set when it is not wanted any more.
    pub(crate) is_unwanted: Arc<AtomicBool>,
}

/// What came of a mix.
#[derive(Clone, Debug, PartialEq)]
pub enum MixOutcome {
    /// It takes so long, where its models take so long one after another.
    Faster {
        /// By the schedule that was found.
        latency: Duration,
        /// One after another.
        in_turns: Duration,
    },
    /// Nothing faster was found than one model after another.
    NotFaster,
    /// There is no room for it beside the models, or no more: it is none.
    NoRoom {
        /// What it takes of the device's memory.
        memory_bytes: u64,
        /// What there is for it.
        free_bytes: u64,
    },
    /// It could not be regulated, and why.
    Failed(String),
}

impl From<NoRoom> for MixOutcome {
    fn from(NoRoom { memory_bytes, free_bytes }: NoRoom) -> Self {
        Self::NoRoom { memory_bytes, free_bytes }
    }
}

/// What it takes to regulate mixes.
pub(crate) struct Mixer {
    pub(crate) device: Arc<dyn Device>,
    /// All units of the device, by the numbers that the scheduler counts them with.
    pub(crate) units: UnitSet,
    /// `None` where mixes are not to be regulated.
    pub(crate) schedules: Option<Arc<dyn KnownSchedules>>,
    /// What they take and may take.
    pub(crate) memory: Arc<MixMemory>,
}

/// Why a mix is not regulated to the end.
enum Ended {
    /// Nobody wants it any more.
    Unwanted,
    NoRoom(NoRoom),
    Failed(String),
}

impl From<NoRoom> for Ended {
    fn from(no_room: NoRoom) -> Self {
        Self::NoRoom(no_room)
    }
}

impl<E: fmt::Display> From<E> for Ended {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Mixer {
    /// Regulates a mix on a thread of its own, which tells a service what came of it.
    pub(crate) fn regulate(
        self: &Arc<Self>,
        shared: &Weak<Shared>,
        generation: Generation,
        wanted: WantedMix,
    ) {
        let (mixer, shared) = (self.clone(), shared.clone());
        let tell = {
            let (shared, mix) = (shared.clone(), wanted.mix);
            move |ready| {
                if let Some(shared) = shared.upgrade() {
                    shared.tell(generation, Message::Regulated(mix, ready));
                }
            }
        };
        let refuse = tell.clone();
        let work = move || {
            let keys: Vec<(ModelKey, u32)> =
                wanted.models.iter().map(|(model, count)| (model.key, *count)).collect();
            let session = Session { mixer: &mixer, shared: &shared, generation, wanted: &wanted };
            // Whoever asked waits for an answer, whatever happens here.
            let ran = catch_unwind(AssertUnwindSafe(|| session.run()));
            let (outcome, ready) = match ran.unwrap_or_else(|_| Err(Ended::from("a panic"))) {
                Err(Ended::Unwanted) => return,
                Err(Ended::NoRoom(no_room)) => (no_room.into(), Err(NoMix::NoRoom)),
                Err(Ended::Failed(why)) => (MixOutcome::Failed(why), Err(NoMix::GainsNothing)),
                Ok(None) => (MixOutcome::NotFaster, Err(NoMix::GainsNothing)),
                Ok(Some((mix, share, latency))) => {
                    let in_turns = Duration::from_secs_f64(mix.in_turns_us() / 1e6);
                    let ready = ReadyMix::new((generation, wanted.mix), keys.clone(), mix, share);
                    let outcome = MixOutcome::Faster { latency, in_turns };
                    (outcome, Ok((Arc::new(ready), span(latency))))
                }
            };
            if let Some(shared) = shared.upgrade() {
                shared.observer.regulated(&keys, &outcome);
            }
            tell(ready.clone());
            // Who made room before could not see it.
            if let (Ok((ready, _)), Some(shared)) = (ready, shared.upgrade()) {
                shared.let_go_if_too_large(&ready);
            }
        };
        // Without a thread every batch runs by itself.
        if self.schedules.is_none() || beside::spawn("weft-regulate", work).is_err() {
            refuse(Err(NoMix::GainsNothing));
        }
    }
}

struct Session<'a> {
    mixer: &'a Mixer,
    shared: &'a Weak<Shared>,
    generation: Generation,
    wanted: &'a WantedMix,
}

impl Session<'_> {
    /// The mix, its share of the memory, and how long it takes as requests have it, where that is worth anything.
    fn run(&self) -> Result<Option<(RegulatedMix, MixShare, Duration)>, Ended> {
        let schedules = self.mixer.schedules.as_deref().ok_or(Ended::Unwanted)?;
        let members = self.members()?;
        let mut batches = Vec::with_capacity(members.len());
        for (model, count) in &self.wanted.models {
            let dimensions = of_batch(model, *count);
            batches.push(inputs(&*model.loaded, &dimensions)?);
        }
        let all = self.mixer.units.as_slice();
        let units: UnitSet = self.wanted.units.iter().map(|unit| all[unit as usize]).collect();
        let none = || Err(DeviceError::Failed("the device has no mixes".into()));
        let mix = self.mixer.device.mix(&members, &units).unwrap_or_else(none)?;
        let mut pieces = Pieces::of(self.mixer.memory.share());
        pieces.share.set(mix.memory_bytes() as u64)?;
        let named = |((model, count), inputs): (&(EngineModel, u32), &Vec<_>)| RegulatedModel {
            name: format!("{} b{count}", model.loaded.name()),
            inputs: inputs.clone(),
        };
        let models = self.wanted.models.iter().zip(&batches).map(named).collect();
        let (time, strategy) = (SEARCH_TIME, Strategy::Descents);
        let options = RegulationOptions { time, strategy, piece: PIECE };
        let mut regulation = Regulation::new(mix, models, options)?;
        let likeness = likeness(&members);
        while regulation.timed().is_none() {
            self.piece(&mut pieces, || regulation.advance())??;
            pieces.share.set(regulation.memory_bytes())?;
        }
        if let Some(stages) = schedules.known(&likeness, regulation.unit_count())
            && let Some(timed) = regulation.timed()
            // One that does not fit any more is as good as none.
            && let Ok(stages) = read_stages(&stages, timed)
        {
            regulation.offer(stages);
        }
        while match regulation.needs_device() {
            true => self.piece(&mut pieces, || regulation.advance())??,
            false => regulation.advance()?,
        } {
            pieces.share.set(regulation.memory_bytes())?;
        }
        let unit_count = regulation.unit_count();
        let mut settling = regulation.settle(ROUNDS)?;
        while match settling.needs_device() {
            true => self.piece(&mut pieces, || settling.advance())??,
            false => settling.advance()?,
        } {
            pieces.share.set(settling.memory_bytes())?;
        }
        pieces.share.set(settling.memory_bytes())?;
        let mut found = settling.finish()?;
        if found.latency_us() > found.in_turns_us() * (1.0 - LEAST_GAIN) {
            return Ok(None);
        }
        let mut took = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            self.piece(&mut pieces, || found.run(&batches).map(drop))??;
            took.push(pieces.last);
        }
        took.sort_unstable();
        if !found.is_known() {
            let us = |us: f64| Duration::from_secs_f64(us / 1e6);
            let (time, in_turns) = (us(found.schedule_us()), us(found.in_turns_us()));
            let stages = write_stages(found.stages(), found.timed());
            schedules.keep(&likeness, unit_count, &FoundSchedule { stages, time, in_turns });
        }
        Ok(Some((found, pieces.share, took[ROUNDS / 2])))
    }

    fn members(&self) -> Result<Vec<MixMember>, Ended> {
        let member = |(model, count): &(EngineModel, u32)| {
            let shapes = model.loaded.graph().input_shapes(&of_batch(model, *count))?;
            Ok(MixMember { model: model.loaded.clone(), shapes })
        };
        self.wanted.models.iter().map(member).collect()
    }

    /// Does a piece of work when there is nothing else to do, for as long as there is room for the mix.
    fn piece<T>(&self, pieces: &mut Pieces, work: impl FnOnce() -> T) -> Result<T, Ended> {
        let shared = self.shared.upgrade().ok_or(Ended::Unwanted)?;
        let mut took = Duration::ZERO;
        let timed = || {
            let start = Instant::now();
            let done = work();
            took = start.elapsed();
            done
        };
        let is_unwanted =
            || self.wanted.is_unwanted.load(Ordering::Relaxed) || pieces.share.fits().is_err();
        let Some(done) = shared.in_idle_moment(self.generation, is_unwanted, timed) else {
            pieces.share.fits()?;
            return Err(Ended::Unwanted);
        };
        let tightest = shared.services().tightest_objective().filter(|_| !self.wanted.may_hold_up);
        drop(shared);
        thread::sleep((took * REST_TIMES).min(LONGEST_REST));
        pieces.last = took;
        pieces.count(tightest.map(|tightest| tightest.mul_f64(SHARE_OF_OBJECTIVE)))?;
        Ok(done)
    }
}

fn of_batch(model: &EngineModel, count: u32) -> Dimensions {
    Dimensions { batch: count as usize, ..model.dimensions.clone() }
}

/// Pieces of work that were done, and what the mix takes by them.
struct Pieces {
    share: MixShare,
    last: Duration,
    overlong: usize,
}

impl Pieces {
    fn of(share: MixShare) -> Self {
        Self { share, last: Duration::ZERO, overlong: 0 }
    }

    /// Counts the last one; an error where too many took longer than they may.
    fn count(&mut self, longest: Option<Duration>) -> Result<(), Ended> {
        let Some(longest) = longest.filter(|&longest| self.last > longest) else { return Ok(()) };
        self.overlong += 1;
        if self.overlong <= MAX_OVERLONG {
            return Ok(());
        }
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        Err(Ended::Failed(format!(
            "it holds up what is served: a piece of work took {:.1} ms, and {:.1} ms are half of the tightest objective",
            ms(self.last),
            ms(longest)
        )))
    }
}
