//! A session that regulates a mix, from timing its steps on until its budget is spent.

use std::time::Duration;

use weft_scheduler::regulate::{Mix, Stages, Strategy};

use super::RegulationError;
use super::outcome::Outcome;
use super::search::Search;
use super::settling::Settling;
use super::stopwatch::Stopwatch;
use super::subject::{RegulatedModel, Subject};
use super::timing::Timing;

/// How long is searched, and how.
#[derive(Clone, Copy, Debug)]
pub struct RegulationOptions {
    /// How long the search may take after all steps were timed, counted inside [`Regulation::advance`].
    pub time: Duration,
    /// How schedules are searched.
    pub strategy: Strategy,
    /// A schedule that is run again and again pauses after so long, and goes on in the next piece.
    pub piece: Duration,
}

/// A mix that is being regulated, one short piece of work at a time. The mix is nobody else's meanwhile; the device may be, between
/// pieces.
pub struct Regulation {
    subject: Subject,
    options: RegulationOptions,
    phase: Phase,
    profiling: Stopwatch,
}

enum Phase {
    Timing(Timing),
    Searching(Box<Search>),
}

impl Regulation {
    /// A session that has done nothing yet but write the inputs of all models: as many as the mix has, in its order.
    pub fn new(
        mix: Box<dyn weft_device::Mix>,
        models: Vec<RegulatedModel>,
        options: RegulationOptions,
    ) -> Result<Self, RegulationError> {
        let subject = Subject::new(mix, models, options.piece)?;
        let phase = Phase::Timing(Timing::new(&subject));
        Ok(Self { subject, options, phase, profiling: Stopwatch::default() })
    }

    /// How many units schedules share out.
    pub fn unit_count(&self) -> u32 {
        self.subject.unit_count()
    }

    /// The mix, once its steps are timed.
    pub fn timed(&self) -> Option<&Mix> {
        match &self.phase {
            Phase::Timing(_) => None,
            Phase::Searching(search) => Some(&search.mix),
        }
    }

    /// Gives stages of the mix that are known from earlier, as [`read_stages`](super::read_stages) finds them to fit. They are
    /// run first, and stay where nothing faster is found. To be called between timing and the first piece of the search.
    pub fn offer(&mut self, known: Stages) {
        if let Phase::Searching(search) = &mut self.phase {
            search.known = Some(known);
        }
    }

    /// Whether the next piece uses the device. One does not, and takes a tenth of the time of the search: predictions.
    pub fn needs_device(&self) -> bool {
        match &self.phase {
            Phase::Timing(_) => true,
            Phase::Searching(search) => search.needs_device(),
        }
    }

    /// What the mix takes of the device's memory at present, besides the weights of its models.
    pub fn memory_bytes(&self) -> u64 {
        self.subject.mix.memory_bytes() as u64
    }

    /// What is done now, in words.
    pub fn progress(&self) -> String {
        match &self.phase {
            Phase::Timing(timing) => timing.progress(&self.subject),
            Phase::Searching(search) => search.progress(),
        }
    }

    /// Goes on by one piece; whether there is more to do.
    pub fn advance(&mut self) -> Result<bool, RegulationError> {
        match &mut self.phase {
            Phase::Timing(timing) => {
                self.profiling.start();
                let timed = timing.advance(&mut self.subject);
                self.profiling.stop();
                if let Some(mix) = timed? {
                    let RegulationOptions { time, strategy, .. } = self.options;
                    self.phase = Phase::Searching(Box::new(Search::new(mix, strategy, time)));
                }
                Ok(true)
            }
            Phase::Searching(search) => search.advance(&mut self.subject),
        }
    }

    /// Ends the session: compares what was found with the other ways to run the mix, in so many rounds, and shows before each piece
    /// what is done.
    pub fn finish(
        self,
        rounds: usize,
        show: impl FnMut(String),
    ) -> Result<Outcome, RegulationError> {
        let Phase::Searching(search) = self.phase else { return Err(RegulationError::NothingRun) };
        let (searched, profiling) = (search.into_searched()?, self.profiling.spent());
        Outcome::compared(self.subject, searched, profiling, rounds, show)
    }

    /// Ends the session and keeps the mix: compares what was found with one model after another, in so many rounds.
    pub fn settle(self, rounds: usize) -> Result<Settling, RegulationError> {
        let Phase::Searching(search) = self.phase else { return Err(RegulationError::NothingRun) };
        Ok(Settling::new(self.subject, search.into_searched()?, rounds))
    }
}
