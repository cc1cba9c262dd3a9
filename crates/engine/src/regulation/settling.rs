//! The end of a session whose mix is to be run by what was found.

use weft_scheduler::regulate::{Lockstep, Stages};

use super::RegulationError;
use super::contest::{Contest, Entrant};
use super::found::Found;
use super::regulated::RegulatedMix;
use super::search::Searched;
use super::subject::Subject;

/// The places of those who take turns and are always there.
const IN_TURNS: usize = 0;
const FOUND: usize = 1;

/// A mix that was searched, while what was found takes turns with one model after another, with what was known, and with launches
/// that models share.
pub struct Settling {
    subject: Subject,
    searched: Searched,
    contest: Contest,
    lockstep: Option<Lockstep>,
    /// The places of those who are not always there.
    known: Option<usize>,
    shared: Option<usize>,
}

impl Settling {
    pub(super) fn new(subject: Subject, searched: Searched, rounds: usize) -> Self {
        let Searched { mix, finalists, .. } = &searched;
        let lockstep = finalists.lockstep(&subject, mix);
        let in_turns = Stages::in_turns(mix).schedule(mix);
        let schedules = [in_turns, finalists.best.schedule.clone()];
        let mut entrants: Vec<Entrant> = schedules.map(Entrant::Scheduled).into();
        let mut place = |entrant: Entrant| {
            entrants.push(entrant);
            entrants.len() - 1
        };
        let known = finalists.rival.as_ref().map(|known| known.schedule.clone());
        let known = known.map(|schedule| place(Entrant::Scheduled(schedule)));
        let shared = lockstep.clone().map(|lockstep| place(Entrant::Shared(lockstep)));
        let contest = Contest::new(entrants, rounds);
        Self { subject, searched, contest, lockstep, known, shared }
    }

    /// Whether the next piece uses the device. One may not, and takes long: launches that are shared are compiled.
    pub fn needs_device(&self) -> bool {
        self.contest.needs_device()
    }

    /// What the mix takes of the device's memory at present, besides the weights of its models.
    pub fn memory_bytes(&self) -> u64 {
        self.subject.mix.memory_bytes() as u64
    }

    /// Goes on by one piece; whether there is more to do. Results are compared with those of each model alone before anything is
    /// timed.
    pub fn advance(&mut self) -> Result<bool, RegulationError> {
        self.contest.advance(&mut self.subject)
    }

    /// The mix with the fastest of what was found, what was known and shared launches, after what is left to do.
    pub fn finish(mut self) -> Result<RegulatedMix, RegulationError> {
        while self.advance()? {}
        let Self { subject, searched, contest, lockstep, known, shared } = self;
        let Searched { mix: timed, finalists, .. } = searched;
        let us = |place: usize| contest.median_us(place).unwrap_or(f64::NAN);
        let rival_stays = finalists.rival_stays(us(FOUND), known.map(us));
        let scheduled = known.filter(|_| rival_stays).unwrap_or(FOUND);
        let (in_turns_us, schedule_us) = (us(IN_TURNS), us(scheduled));
        let shared = shared.filter(|&shared| us(shared) < schedule_us);
        let latency_us = shared.map_or(schedule_us, us);
        let lockstep = lockstep.filter(|_| shared.is_some());
        let (Found { stages, .. }, is_known) = finalists.into_chosen(rival_stays);
        let compiled = contest.into_compiled(shared.unwrap_or(scheduled));
        Ok(RegulatedMix {
            compiled: compiled.ok_or(RegulationError::NothingRun)?,
            models: subject.models.len(),
            mix: subject.mix,
            timed,
            stages,
            is_known,
            lockstep,
            latency_us,
            schedule_us,
            in_turns_us,
        })
    }
}
