//! Schedules that take turns, so that whatever else happens on the device happens to all of them.

use weft_device::{CompiledMix, DeviceError};
use weft_ir::Value;
use weft_scheduler::regulate::{Lockstep, MixSchedule};

use super::RegulationError;
use super::median::{MedianRun, median};
use super::subject::Subject;

/// What takes turns with others.
pub(super) enum Entrant {
    Scheduled(MixSchedule),
    /// All models on all units, as hardware or operating system like.
    AtOnce,
    /// Steps of different models share launches. It stands last, and is left out where it cannot be compiled.
    Shared(Lockstep),
}

/// An entrant whose results are those of each model alone.
struct Contender {
    compiled: CompiledMix,
    /// Medians, one for each round.
    times_us: Vec<f64>,
}

/// Entrants in rounds, in each of which all have a turn.
pub(super) struct Contest {
    /// Those whose results were not compared yet, the last first.
    entrants: Vec<Entrant>,
    alone: Option<Vec<Vec<Value>>>,
    /// Of the entrant that was last taken, where its results were not compared yet.
    compiled: Option<CompiledMix>,
    contenders: Vec<Contender>,
    /// Why shared launches were left out.
    unshared: Option<DeviceError>,
    rounds: usize,
    turns: usize,
    runs: MedianRun,
}

impl Contest {
    pub(super) fn new(mut entrants: Vec<Entrant>, rounds: usize) -> Self {
        entrants.reverse();
        Self {
            entrants,
            alone: None,
            compiled: None,
            contenders: Vec::new(),
            unshared: None,
            rounds: rounds.max(1),
            turns: 0,
            runs: MedianRun::default(),
        }
    }

    /// Whether the next piece uses the device. Programs of launches that are shared are compiled without it, which may take long.
    pub(super) fn needs_device(&self) -> bool {
        let is_shared = matches!(self.entrants.last(), Some(Entrant::Shared(_)));
        self.alone.is_none() || self.compiled.is_some() || !is_shared
    }

    /// What is done now, in words.
    pub(super) fn progress(&self) -> String {
        let count = self.contenders.len();
        match self.entrants.is_empty() && self.compiled.is_none() && count > 0 {
            true => format!("comparing ways: round {} of {}", self.turns / count + 1, self.rounds),
            false => "comparing results".to_string(),
        }
    }

    /// Goes on by one piece; whether there is more to do. All results are compared before anything is timed.
    pub(super) fn advance(&mut self, subject: &mut Subject) -> Result<bool, RegulationError> {
        let Some(alone) = &self.alone else {
            self.alone = Some(subject.results_alone()?);
            return Ok(true);
        };
        if self.compiled.is_none()
            && let Some(entrant) = self.entrants.pop()
        {
            self.compiled = match entrant {
                Entrant::Scheduled(schedule) => Some(subject.compile(&schedule)?),
                Entrant::AtOnce => Some(subject.mix.at_once()?),
                Entrant::Shared(lockstep) => {
                    assert!(self.entrants.is_empty(), "places of others would change");
                    match subject.compile_shared(&lockstep) {
                        Ok(compiled) => self.compiled = Some(compiled),
                        Err(error) => self.unshared = Some(error),
                    }
                    return Ok(true);
                }
            };
        }
        if let Some(compiled) = self.compiled.take() {
            subject.check(&compiled, alone)?;
            self.contenders.push(Contender { compiled, times_us: Vec::new() });
            return Ok(true);
        }
        let count = self.contenders.len();
        if self.turns < self.rounds * count {
            let contender = &mut self.contenders[self.turns % count];
            if let Some(us) = subject.run(&contender.compiled, &mut self.runs)? {
                contender.times_us.push(us);
                self.runs = MedianRun::default();
                self.turns += 1;
            }
        }
        Ok(self.turns < self.rounds * count)
    }

    /// The median of an entrant's rounds in microseconds, by its place; `None` where there is no such entrant.
    pub(super) fn median_us(&self, place: usize) -> Option<f64> {
        self.contenders.get(place).map(|contender| median(&contender.times_us))
    }

    /// Why shared launches could not be compiled, where they were to be.
    pub(super) fn unshared(&self) -> Option<&DeviceError> {
        self.unshared.as_ref()
    }

    /// What an entrant that has had its turns is run by.
    pub(super) fn into_compiled(mut self, place: usize) -> Option<CompiledMix> {
        (place < self.contenders.len()).then(|| self.contenders.swap_remove(place).compiled)
    }
}
