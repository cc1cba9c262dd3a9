//! What became of a mix: the schedule that was found, beside other ways to run it.

use std::time::Duration;

use weft_scheduler::regulate::{
    Lockstep, Mix, MixSchedule, RegulationSearch, Stages, Strategy, Timeline,
};

use super::RegulationError;
use super::contest::{Contest, Entrant};
use super::search::Searched;
use super::subject::Subject;

/// How the models of a mix share the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each on the whole device, one after another.
    InTurns,
    /// All at once on the whole device.
    AtOnce,
    /// Each on as many units as the others.
    EvenPartitions,
    /// By the schedule that was found.
    Regulated,
    /// In lockstep, where steps of different models share launches on the whole device.
    SharedLaunches,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::InTurns, Self::AtOnce, Self::EvenPartitions, Self::Regulated, Self::SharedLaunches];
}

/// What was found.
pub struct Outcome {
    /// The mix as it was timed.
    pub mix: Mix,
    /// What it is called on the device that all models run at once.
    pub at_once: &'static str,
    /// What was found.
    pub stages: Stages,
    /// What the stages stand for.
    pub schedule: MixSchedule,
    /// It was known before the search, which found nothing faster.
    pub is_known: bool,
    /// As predicted, before it was run.
    pub timeline: Timeline,
    /// The prediction with what runs before it had taught, in microseconds.
    pub predicted_us: f64,
    /// The launches that models share, where they were run.
    pub lockstep: Option<Lockstep>,
    /// Why they were not run though they might have been faster: they could not be compiled.
    pub unshared: Option<String>,
    /// Of each way, in microseconds: medians of rounds in turns. No number where a way was not run.
    pub times_us: [f64; 5],
    /// Of what coordinate descent finds by predictions alone, in the same rounds.
    pub coordinate_descent_us: f64,
    /// How long timing the steps took.
    pub profiling: Duration,
    /// How long after the search began the best had come to a time, in microseconds.
    pub history: Vec<(Duration, f64)>,
    /// Schedules that were predicted.
    pub evaluated: usize,
    /// Schedules that were run.
    pub measured: usize,
}

impl Outcome {
    /// What a way is called on the device.
    pub fn name(&self, way: Way) -> &'static str {
        match way {
            Way::InTurns => "one after another",
            Way::AtOnce => self.at_once,
            Way::EvenPartitions => "even partitions",
            Way::Regulated => "regulated",
            Way::SharedLaunches => "shared launches",
        }
    }

    /// The ways that were run.
    pub fn ways(&self) -> impl Iterator<Item = Way> {
        Way::ALL.into_iter().filter(|&way| !self.time_us(way).is_nan())
    }

    /// What the mix is best run by: the fastest of the ways that say who has which units, and what was regulated where another is as
    /// fast.
    pub fn best(&self) -> Way {
        let us = |way: Way| self.time_us(way);
        let faster = |best: Way, way: Way| if us(way) < us(best) { way } else { best };
        self.ways().filter(|way| *way != Way::AtOnce).fold(Way::Regulated, faster)
    }

    /// How long the mix takes in one of the ways, in microseconds; no number where it was not run.
    pub fn time_us(&self, way: Way) -> f64 {
        self.times_us[way as usize]
    }

    /// When the search had come to within two percent of what it found in the end.
    pub fn settled(&self) -> Duration {
        let last = self.history.last().map_or(f64::INFINITY, |&(_, us)| us);
        let close = self.history.iter().find(|&&(_, us)| us <= 1.02 * last);
        close.map_or(Duration::ZERO, |&(at, _)| at)
    }

    /// Compares what a search came to with the other ways, in turns; and with what was known before, where that is something
    /// else. What is done is shown before each piece.
    pub(super) fn compared(
        mut subject: Subject,
        searched: Searched,
        profiling: Duration,
        rounds: usize,
        mut show: impl FnMut(String),
    ) -> Result<Self, RegulationError> {
        let Searched { mix, finalists, history, evaluated, measured } = searched;
        let lockstep = finalists.lockstep(&subject, &mix);
        // In the order of the ways.
        let mut entrants = vec![
            Entrant::Scheduled(Stages::in_turns(&mix).schedule(&mix)),
            Entrant::AtOnce,
            Entrant::Scheduled(even_partitions(&mix)),
            Entrant::Scheduled(finalists.best.schedule.clone()),
        ];
        let mut place = |entrant: Entrant| {
            entrants.push(entrant);
            entrants.len() - 1
        };
        let descended = place(Entrant::Scheduled(coordinate_descent(&mix)));
        let known = finalists.rival.as_ref().map(|rival| rival.schedule.clone());
        let known = known.map(|schedule| place(Entrant::Scheduled(schedule)));
        let shared = lockstep.clone().map(|lockstep| place(Entrant::Shared(lockstep)));
        let mut contest = Contest::new(entrants, rounds);
        loop {
            show(contest.progress());
            if !contest.advance(&mut subject)? {
                break;
            }
        }
        let us = |place: usize| contest.median_us(place).unwrap_or(f64::NAN);
        let mut times_us = Way::ALL.map(|way| match way {
            Way::SharedLaunches => shared.map_or(f64::NAN, us),
            way => us(way as usize),
        });
        let regulated_us = &mut times_us[Way::Regulated as usize];
        let known_us = known.map(us);
        let rival_stays = finalists.rival_stays(*regulated_us, known_us);
        if rival_stays {
            *regulated_us = known_us.unwrap_or(f64::NAN);
        }
        let (chosen, is_known) = finalists.into_chosen(rival_stays);
        Ok(Self {
            at_once: subject.mix.at_once_name(),
            timeline: chosen.schedule.timeline(&mix),
            stages: chosen.stages,
            schedule: chosen.schedule,
            is_known,
            predicted_us: chosen.predicted_us,
            lockstep: lockstep.filter(|_| contest.unshared().is_none()),
            unshared: contest.unshared().map(ToString::to_string),
            times_us,
            coordinate_descent_us: us(descended),
            mix,
            profiling,
            history,
            evaluated,
            measured,
        })
    }
}

/// What coordinate descent finds by predictions alone.
fn coordinate_descent(mix: &Mix) -> MixSchedule {
    let mut search = RegulationSearch::new(mix, Strategy::CoordinateDescent, 1);
    while !search.is_done() {
        search.advance();
    }
    let best = search.finalists().next().map(|(_, schedule, _)| schedule.clone());
    best.unwrap_or_else(|| Stages::even(mix).schedule(mix))
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
