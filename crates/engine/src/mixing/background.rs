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
use crate::model::{EngineModel, ModelKey};
use crate::profiling::inputs;
use crate::regulation::{
    RegulatedMix, RegulatedModel, Regulation, RegulationError, RegulationOptions, Settling,
    likeness, read_stages, write_stages,
};
use crate::service::{Generation, Message};
use crate::shared::Shared;

/// How much of the device's time the search for one mix may take, after its steps were timed.
const SEARCH_TIME: Duration = Duration::from_secs(1);

/// How long a piece of work should take that is cut at will.
const PIECE: Duration = Duration::from_millis(2);

/// A piece takes this share of the tightest objective at most, unless others may be late for it; so many may take longer before
/// it is given up.
const SHARE_OF_OBJECTIVE: f64 = 0.5;
const MAX_OVERLONG: usize = 4;

/// After a piece the device is left alone for so many times as long, up to a limit, so that few requests find one under way.
const REST_TIMES: u32 = 3;
const LONGEST_REST: Duration = Duration::from_secs(2);

/// Rounds in which what was found takes turns with one model after another.
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
    /// It takes so long, where its models take so long one after another: medians of the same rounds, without copies of inputs and
    /// outputs.
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
                Ok(Some((mix, memory))) => {
                    let share = mix.latency_us() / mix.in_turns_us();
                    let (latency, in_turns) = (time(mix.latency_us()), time(mix.in_turns_us()));
                    let ready = ReadyMix::new((generation, wanted.mix), keys.clone(), mix, memory);
                    (MixOutcome::Faster { latency, in_turns }, Ok((Arc::new(ready), share)))
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
        // It does not step back: who works for a mix begins here, and would step back with it for as long as the mix is served.
        let start = || thread::Builder::new().name("weft-regulate".into()).spawn(work);
        // Without a thread every batch runs by itself.
        if self.schedules.is_none() || start().is_err() {
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

/// What goes on piece by piece.
trait Piecewise: Send {
    /// Whether the next piece uses the device.
    fn needs_device(&self) -> bool;

    /// What it takes of the device's memory at present.
    fn memory_bytes(&self) -> u64;

    /// Does the next piece; whether there is another.
    fn advance(&mut self) -> Result<bool, RegulationError>;
}

impl Piecewise for Regulation {
    fn needs_device(&self) -> bool {
        self.needs_device()
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }

    fn advance(&mut self) -> Result<bool, RegulationError> {
        self.advance()
    }
}

impl Piecewise for Settling {
    fn needs_device(&self) -> bool {
        self.needs_device()
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }

    fn advance(&mut self) -> Result<bool, RegulationError> {
        self.advance()
    }
}

impl Session<'_> {
    /// The mix and its share of the memory, where it is worth anything.
    fn run(&self) -> Result<Option<(RegulatedMix, MixShare)>, Ended> {
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
        let plan = || self.mixer.device.mix(&members, &units).unwrap_or_else(none);
        let mix = beside::wait_for("weft-regulate", plan)??;
        let mut pieces = Pieces { share: self.mixer.memory.share(), overlong: 0 };
        pieces.share.set(mix.memory_bytes() as u64)?;
        let named = |((model, count), inputs): (&(EngineModel, u32), Vec<_>)| RegulatedModel {
            name: format!("{} b{count}", model.loaded.name()),
            inputs,
        };
        let models = self.wanted.models.iter().zip(batches).map(named).collect();
        let (time_for_search, strategy) = (SEARCH_TIME, Strategy::Descents);
        let options = RegulationOptions { time: time_for_search, strategy, piece: PIECE };
        let mut regulation = Regulation::new(mix, models, options)?;
        let likeness = likeness(&members);
        while regulation.timed().is_none() {
            self.go_on(&mut regulation, &mut pieces)?;
        }
        if let Some(stages) = schedules.known(&likeness, regulation.unit_count())
            && let Some(timed) = regulation.timed()
            // One that does not fit any more is as good as none.
            && let Ok(stages) = read_stages(&stages, timed)
        {
            regulation.offer(stages);
        }
        while self.go_on(&mut regulation, &mut pieces)? {}
        let unit_count = regulation.unit_count();
        let mut settling = regulation.settle(ROUNDS)?;
        while self.go_on(&mut settling, &mut pieces)? {}
        let found = settling.finish()?;
        if found.latency_us() > found.in_turns_us() * (1.0 - LEAST_GAIN) {
            return Ok(None);
        }
        if !found.is_known() {
            let stages = write_stages(found.stages(), found.timed());
            let (time, in_turns) = (time(found.schedule_us()), time(found.in_turns_us()));
            schedules.keep(&likeness, unit_count, &FoundSchedule { stages, time, in_turns });
        }
        Ok(Some((found, pieces.share)))
    }

    /// Does the next piece of some work; whether there is another.
    fn go_on(&self, work: &mut impl Piecewise, pieces: &mut Pieces) -> Result<bool, Ended> {
        let has_more = match work.needs_device() {
            true => self.piece(pieces, || work.advance())?,
            false => beside::wait_for("weft-regulate", || work.advance())?,
        };
        pieces.share.set(work.memory_bytes())?;
        Ok(has_more?)
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
        pieces.count(took, tightest.map(|tightest| tightest.mul_f64(SHARE_OF_OBJECTIVE)))?;
        Ok(done)
    }
}

fn of_batch(model: &EngineModel, count: u32) -> Dimensions {
    Dimensions { batch: count as usize, ..model.dimensions.clone() }
}

fn time(us: f64) -> Duration {
    Duration::from_secs_f64(us / 1e6)
}

/// What the mix takes by the pieces of work that were done, and how many of these took longer than they may.
struct Pieces {
    share: MixShare,
    overlong: usize,
}

impl Pieces {
    /// Counts one; an error where too many took too long.
    fn count(&mut self, took: Duration, longest: Option<Duration>) -> Result<(), Ended> {
        let Some(longest) = longest.filter(|&longest| took > longest) else { return Ok(()) };
        self.overlong += 1;
        if self.overlong <= MAX_OVERLONG {
            return Ok(());
        }
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        Err(Ended::Failed(format!(
            "it holds up what is served: a piece of work took {:.1} ms, and {:.1} ms are half of the tightest objective",
            ms(took),
            ms(longest)
        )))
    }
}
