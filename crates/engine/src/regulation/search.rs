//! The search on a device, piece by piece: what is predicted to be best is run, and what runs best is changed further.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use weft_device::CompiledMix;
use weft_scheduler::regulate::{Form, Mix, MixSchedule, RegulationSearch, Stages, Strategy};

use super::RegulationError;
use super::found::{Finalists, Found};
use super::median::{MedianRun, median};
use super::stopwatch::Stopwatch;
use super::subject::Subject;

/// Of the budget, what goes into predictions before anything is run.
const PREDICTING_SHARE: f64 = 0.1;

/// Neighbours that are run before it is enough that none is better.
const NEIGHBOURS: usize = 24;

/// So many times in a row what is best may be shaken without anything that was not run before.
const MAX_STALE_SHAKES: u32 = 256;

/// What a search does next.
enum Step {
    /// Predicts, which takes no device.
    Predict,
    /// Runs what is predicted to be best.
    Try(VecDeque<Stages>),
    /// Changes what was run.
    Climb(Climb),
    /// Shakes what is best, and changes that.
    Shake,
    End,
}

/// Stages that took so long, and their changes that are still to be run, the most promising first.
struct Climb {
    us: f64,
    neighbours: VecDeque<Stages>,
    tried: usize,
}

/// Stages that are being run.
struct Trial {
    stages: Stages,
    schedule: MixSchedule,
    /// As predicted, and with what runs before it have taught.
    raw_us: f64,
    predicted_us: f64,
    compiled: CompiledMix,
    runs: MedianRun,
}

/// A search for a mix that was timed.
pub(super) struct Search {
    pub(super) mix: Mix,
    strategy: Strategy,
    time: Duration,
    pub(super) known: Option<Stages>,
    clock: Stopwatch,
    step: Step,
    trial: Option<Trial>,
    best: Option<Found>,
    run: HashSet<MixSchedule>,
    /// What runs took, next to what was predicted of them, for each set of fillers and forms.
    ratios: HashMap<(Vec<bool>, Vec<Form>), Vec<f64>>,
    seed: u64,
    stale_shakes: u32,
    evaluated: usize,
    history: Vec<(Duration, f64)>,
}

/// What a search has come to.
pub(super) struct Searched {
    pub(super) mix: Mix,
    pub(super) finalists: Finalists,
    pub(super) history: Vec<(Duration, f64)>,
    pub(super) evaluated: usize,
    pub(super) measured: usize,
}

impl Search {
    /// A search that has looked at nothing yet, and may take so long.
    pub(super) fn new(mix: Mix, strategy: Strategy, time: Duration) -> Self {
        Self {
            mix,
            strategy,
            time,
            known: None,
            clock: Stopwatch::default(),
            step: Step::Predict,
            trial: None,
            best: None,
            run: HashSet::new(),
            ratios: HashMap::new(),
            seed: 0,
            stale_shakes: 0,
            evaluated: 0,
            history: Vec::new(),
        }
    }

    pub(super) fn needs_device(&self) -> bool {
        !matches!(self.step, Step::Predict)
    }

    /// What was done so far, in words.
    pub(super) fn progress(&self) -> String {
        match &self.best {
            Some(best) => {
                let noun = if self.run.len() == 1 { "schedule" } else { "schedules" };
                format!("{} {noun} run, the best in {:.3} ms", self.run.len(), best.us / 1e3)
            }
            None => "predicting schedules".to_string(),
        }
    }

    /// Goes on by one piece; whether there is more to do.
    pub(super) fn advance(&mut self, subject: &mut Subject) -> Result<bool, RegulationError> {
        self.clock.start();
        let outcome = self.piece(subject);
        self.clock.stop();
        outcome.map(|()| !matches!(self.step, Step::End))
    }

    /// What it came to so far.
    pub(super) fn into_searched(self) -> Result<Searched, RegulationError> {
        let Self { mix, best, known, history, evaluated, run, .. } = self;
        let best = best.ok_or(RegulationError::NothingRun)?;
        let finalists = Finalists::new(best, known, &mix);
        Ok(Searched { mix, finalists, history, evaluated, measured: run.len() })
    }

    fn piece(&mut self, subject: &mut Subject) -> Result<(), RegulationError> {
        if self.trial.is_none() {
            let Some((stages, schedule)) = self.next() else { return Ok(()) };
            let raw_us = schedule.timeline(&self.mix).makespan.us();
            let predicted_us = raw_us * self.correction(&stages);
            let (compiled, runs) = (subject.compile(&schedule)?, MedianRun::default());
            self.trial = Some(Trial { stages, schedule, raw_us, predicted_us, compiled, runs });
        }
        let Some(Trial { compiled, runs, .. }) = &mut self.trial else { return Ok(()) };
        if let Some(us) = subject.run(compiled, runs)?
            && let Some(trial) = self.trial.take()
        {
            self.note(trial, us);
        }
        Ok(())
    }

    /// What is run next; none where a step ended without anything to run.
    fn next(&mut self) -> Option<(Stages, MixSchedule)> {
        match std::mem::replace(&mut self.step, Step::End) {
            Step::Predict => {
                self.step = Step::Try(self.predicted());
                None
            }
            Step::Try(mut stages) => {
                // One is run however short the time is.
                while let Some(next) = stages.pop_front()
                    && (self.is_within() || self.best.is_none())
                {
                    if let Some(next) = self.unless_run(next) {
                        self.step = Step::Try(stages);
                        return Some(next);
                    }
                }
                let best = self.best.as_ref().filter(|_| self.is_within())?;
                self.step = Step::Climb(self.climb(&best.stages, best.us));
                None
            }
            Step::Climb(mut climb) => {
                while climb.tried < NEIGHBOURS
                    && self.is_within()
                    && let Some(next) = climb.neighbours.pop_front()
                {
                    if let Some(next) = self.unless_run(next) {
                        climb.tried += 1;
                        self.step = Step::Climb(climb);
                        return Some(next);
                    }
                }
                self.step = Step::Shake;
                None
            }
            Step::Shake => {
                let is_stale = self.stale_shakes >= MAX_STALE_SHAKES;
                let best = self.best.as_ref().filter(|_| self.is_within() && !is_stale)?;
                self.seed += 1;
                self.stale_shakes += 1;
                let shaken = best.stages.shaken(&self.mix, self.seed);
                let next = self.unless_run(shaken.clone());
                // What is run now takes less than for ever, and is changed further for it.
                self.step = Step::Climb(match next {
                    Some(_) => Climb { us: f64::INFINITY, neighbours: VecDeque::new(), tried: 0 },
                    None => self.climb(&shaken, f64::INFINITY),
                });
                next
            }
            Step::End => None,
        }
    }

    fn is_within(&self) -> bool {
        self.clock.spent() < self.time
    }

    /// What was known, and what is predicted to be best.
    fn predicted(&mut self) -> VecDeque<Stages> {
        let mut search = RegulationSearch::new(&self.mix, self.strategy, 1);
        loop {
            search.advance();
            if search.is_done() || self.clock.spent() >= self.time.mul_f64(PREDICTING_SHARE) {
                break;
            }
        }
        self.evaluated = search.evaluated();
        let finalists = search.finalists().map(|(stages, ..)| stages.clone());
        self.known.clone().into_iter().chain(finalists).collect()
    }

    /// The changes of stages that took so long.
    fn climb(&self, stages: &Stages, us: f64) -> Climb {
        let predicted = |stages: Stages| {
            let raw = stages.schedule(&self.mix).timeline(&self.mix).makespan.us();
            (raw * self.correction(&stages), stages)
        };
        let mut changed: Vec<(f64, Stages)> =
            stages.neighbours(&self.mix).into_iter().map(predicted).collect();
        changed.sort_by(|a, b| a.0.total_cmp(&b.0));
        let neighbours = changed.into_iter().map(|(_, stages)| stages).collect();
        Climb { us, neighbours, tried: 0 }
    }

    /// Stages with their schedule, unless that was run before.
    fn unless_run(&mut self, stages: Stages) -> Option<(Stages, MixSchedule)> {
        let schedule = stages.schedule(&self.mix);
        if !self.run.insert(schedule.clone()) {
            return None;
        }
        self.stale_shakes = 0;
        Some((stages, schedule))
    }

    /// How many times longer than predicted runs with the same fillers and forms took.
    fn correction(&self, stages: &Stages) -> f64 {
        let alike = (stages.fillers.clone(), stages.forms.clone());
        self.ratios.get(&alike).map_or(1.0, |ratios| median(ratios))
    }

    /// Notes how long stages took. What is changed and got faster is changed further.
    fn note(&mut self, trial: Trial, us: f64) {
        let Trial { stages, schedule, raw_us, predicted_us, .. } = trial;
        let alike = (stages.fillers.clone(), stages.forms.clone());
        self.ratios.entry(alike).or_default().push(us / raw_us);
        if let Step::Climb(climb) = &self.step
            && us < climb.us
        {
            self.step = Step::Climb(self.climb(&stages, us));
        }
        if self.best.as_ref().is_none_or(|best| us < best.us) {
            self.history.push((self.clock.spent(), us));
            self.best = Some(Found { stages, schedule, us, predicted_us });
        }
    }
}
