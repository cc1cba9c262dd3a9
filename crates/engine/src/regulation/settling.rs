//! The end of a session whose mix is to be run by what was found.

use weft_scheduler::regulate::Stages;

use super::RegulationError;
use super::contest::{Contest, Entrant};
use super::regulated::RegulatedMix;
use super::search::Searched;
use super::subject::Subject;

/// The places of those who take turns.
const IN_TURNS: usize = 0;
const FOUND: usize = 1;
const KNOWN: usize = 2;

/// A mix that was searched, while what was found takes turns with one model after another, and with what was known.
pub struct Settling {
    subject: Subject,
    searched: Searched,
    contest: Contest,
}

impl Settling {
    pub(super) fn new(subject: Subject, searched: Searched, rounds: usize) -> Self {
        let Searched { mix, finalists, .. } = &searched;
        let in_turns = Stages::in_turns(mix).schedule(mix);
        let (found, known) = (&finalists.best, &finalists.rival);
        let known = known.iter().map(|known| known.schedule.clone());
        let schedules = [in_turns, found.schedule.clone()].into_iter().chain(known);
        let contest = Contest::new(schedules.map(Entrant::Scheduled).collect(), rounds);
        Self { subject, searched, contest }
    }

    /// Goes on by one piece; whether there is more to do. Results are compared with those of each model alone before anything is
    /// timed.
    pub fn advance(&mut self) -> Result<bool, RegulationError> {
        self.contest.advance(&mut self.subject)
    }

    /// The mix with the faster of what was found and what was known, after what is left to do.
    pub fn finish(mut self) -> Result<RegulatedMix, RegulationError> {
        while self.advance()? {}
        let Self { subject, searched: Searched { mix: timed, finalists, .. }, contest } = self;
        let us = |place: usize| contest.median_us(place).unwrap_or(f64::NAN);
        let rival_stays = finalists.rival_stays(us(FOUND), contest.median_us(KNOWN));
        let place = if rival_stays { KNOWN } else { FOUND };
        let (latency_us, in_turns_us) = (us(place), us(IN_TURNS));
        let (chosen, is_known) = finalists.into_chosen(rival_stays);
        let compiled = contest.into_compiled(place).ok_or(RegulationError::NothingRun)?;
        let (mix, stages, models) = (subject.mix, chosen.stages, subject.models.len());
        Ok(RegulatedMix { mix, compiled, models, timed, stages, is_known, latency_us, in_turns_us })
    }
}
