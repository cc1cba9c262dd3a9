//! The search on a device: what is predicted to be best is run, and what runs best is changed further.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Result;
use weft_cuda::CompiledMix;
use weft_scheduler::regulate::{Mix, MixSchedule, RegulationSearch, Stages, Strategy};

use super::outcome::{Outcome, Way};
use super::subject::Subject;
use crate::bench::median;
use crate::progress;

/// How long is searched, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) time: Duration,
    pub(crate) strategy: Strategy,
    pub(crate) rounds: usize,
}

/// Of the budget, what goes into predictions before anything is run.
const PREDICTING_SHARE: f64 = 0.1;

/// Neighbours that are run before it is enough that none is better.
const NEIGHBOURS: usize = 24;

/// Finds a schedule for a mix whose steps were timed, and compares it with other ways.
pub(crate) fn regulate(
    subject: &mut Subject,
    mix: &Mix,
    budget: Budget,
    profiling: Duration,
) -> Result<Outcome> {
    let mut run = Run::new(subject, mix);
    let mut search = RegulationSearch::new(mix, budget.strategy, 1);
    while run.began.elapsed() < budget.time.mul_f64(PREDICTING_SHARE) && !search.is_done() {
        search.advance();
    }
    let finalists: Vec<Stages> = search.finalists().map(|(stages, ..)| stages.clone()).collect();
    for stages in finalists {
        if run.began.elapsed() < budget.time {
            run.measure(stages)?;
        }
    }
    // What runs best is changed until nothing helps; then it is shaken, and changed again.
    let mut seed = 0;
    while let Some(best) = run.best.as_ref().filter(|_| run.began.elapsed() < budget.time) {
        let start = match seed {
            0 => (best.stages.clone(), best.us),
            _ => {
                let shaken = best.stages.shaken(mix, seed);
                let us = run.measure(shaken.clone())?;
                (shaken, us.unwrap_or(f64::INFINITY))
            }
        };
        run.climb(start, budget.time)?;
        seed += 1;
    }
    let evaluated = search.evaluated();
    run.finish(budget.rounds, profiling, evaluated)
}

struct Best {
    stages: Stages,
    schedule: MixSchedule,
    us: f64,
    /// What was predicted of it when it was first run.
    predicted_us: f64,
}

struct Run<'a> {
    subject: &'a mut Subject,
    mix: &'a Mix,
    began: Instant,
    best: Option<Best>,
    known: HashSet<MixSchedule>,
    /// What runs took, next to what was predicted of them.
    ratios: Vec<f64>,
    history: Vec<(Duration, f64)>,
}

impl<'a> Run<'a> {
    fn new(subject: &'a mut Subject, mix: &'a Mix) -> Self {
        Self {
            subject,
            mix,
            began: Instant::now(),
            best: None,
            known: HashSet::new(),
            ratios: Vec::new(),
            history: Vec::new(),
        }
    }

    fn best_us(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |best| best.us)
    }

    /// Changes stages that took so long as long as that helps, the most promising changes first.
    fn climb(&mut self, (mut stages, mut us): (Stages, f64), until: Duration) -> Result<()> {
        'changing: loop {
            let predicted = |stages: Stages| {
                (stages.schedule(self.mix).timeline(self.mix).makespan.us(), stages)
            };
            let mut changed: Vec<(f64, Stages)> =
                stages.neighbours(self.mix).into_iter().map(predicted).collect();
            changed.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut tried = 0;
            for (_, neighbour) in changed {
                if tried == NEIGHBOURS || self.began.elapsed() >= until {
                    return Ok(());
                }
                let Some(found) = self.measure(neighbour.clone())? else { continue };
                tried += 1;
                if found < us {
                    (stages, us) = (neighbour, found);
                    continue 'changing;
                }
            }
            return Ok(());
        }
    }

    /// Runs a schedule unless it was run before, and says how long it took, in microseconds.
    fn measure(&mut self, stages: Stages) -> Result<Option<f64>> {
        let schedule = stages.schedule(self.mix);
        if !self.known.insert(schedule.clone()) {
            return Ok(None);
        }
        let raw = schedule.timeline(self.mix).makespan.us();
        let predicted_us = raw * if self.ratios.is_empty() { 1.0 } else { median(&self.ratios) };
        let us = self.subject.time_us(&schedule)?;
        self.ratios.push(us / raw);
        if us < self.best_us() {
            self.history.push((self.began.elapsed(), us));
            self.best = Some(Best { stages, schedule, us, predicted_us });
        }
        let count = self.known.len();
        progress::show(format!(
            "{count} schedules run, the best in {:.3} ms",
            self.best_us() / 1e3
        ));
        Ok(Some(us))
    }

    /// Compares the best with the other ways, in turns.
    fn finish(self, rounds: usize, profiling: Duration, evaluated: usize) -> Result<Outcome> {
        let Self { subject, mix, best, history, known, .. } = self;
        let best = best.ok_or_else(|| anyhow::anyhow!("no schedule was run within the budget"))?;
        let even = even_partitions(mix);
        let ways: [CompiledMix; 4] = [
            subject.compile(&Stages::in_turns(mix).schedule(mix))?,
            subject.streams()?,
            subject.compile(&even)?,
            subject.compile(&best.schedule)?,
        ];
        ways.iter().try_for_each(|way| subject.check(way))?;
        let mut times: [Vec<f64>; 4] = Default::default();
        for _ in 0..rounds.max(1) {
            for way in Way::ALL {
                times[way as usize].push(subject.median_us(&ways[way as usize])?);
            }
        }
        Ok(Outcome {
            timeline: best.schedule.timeline(mix),
            schedule: best.schedule,
            predicted_us: best.predicted_us,
            times_us: times.map(|times| median(&times)),
            profiling,
            history,
            evaluated,
            measured: known.len(),
        })
    }
}

/// Each model on its own even share, to its end: units of those that have ended stay idle.
fn even_partitions(mix: &Mix) -> MixSchedule {
    let mut schedule = Stages::even(mix).schedule(mix);
    let mut whole = Vec::new();
    for mut segment in std::mem::take(&mut schedule.segments) {
        if segment.steps.start == 0 {
            segment.steps.end = mix.models()[segment.model].step_count();
            whole.push(segment);
        }
    }
    MixSchedule { segments: whole }
}
