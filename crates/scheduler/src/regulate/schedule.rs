//! A schedule of a mix: which steps of which model run where, and what waits for what.

use std::ops::Range;

use thiserror::Error;

use super::{Form, Mix};
use crate::{Span, UnitMask};

/// Consecutive steps of one model on the same units.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// Which of the mix's models.
    pub model: usize,
    /// Which of its steps.
    pub steps: Range<usize>,
    /// How its batch is computed: the same in all segments of a model.
    pub form: Form,
    /// What it runs on.
    pub units: UnitMask,
    /// It has the units beside all others, of which it leaves them as much as they want; nobody waits for it, nor it for
    /// anybody but the one before it of its model.
    pub is_filler: bool,
}

impl Segment {
    /// The units of chunks that run at the same time: as many equal shares as there are chunks, or one unit each where there
    /// are fewer. What is left over stays idle. None where the batch is computed at once.
    pub fn shares(&self) -> Vec<UnitMask> {
        let chunks = self.form.chunks;
        if chunks <= 1 {
            return Vec::new();
        }
        let units: Vec<u32> = self.units.iter().collect();
        let size = (units.len() / chunks as usize).max(1);
        let shares = units.chunks_exact(size).take(chunks as usize);
        shares.map(|share| share.iter().copied().collect()).collect()
    }
}

/// Segments, each after all that it waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MixSchedule {
    /// In order.
    pub segments: Vec<Segment>,
}

/// Why a schedule is none of its mix.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ScheduleError {
    /// A segment is of no model of the mix, or has no steps or units.
    #[error("segment {0} is of no model, or has no steps, or units that are not the device's")]
    Segment(usize),
    /// Steps are missing, run twice, or out of order.
    #[error("the steps of model {0} are not all there in order")]
    Steps(usize),
    /// A model's batch is computed in one way and then in another, or in one that it does not have.
    #[error(
        "the batch of model {0} is computed in different ways, or in one that it was not timed in"
    )]
    Form(usize),
}

/// When the segments of a schedule run.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Begin and end of each segment, from the beginning of all.
    pub segments: Vec<(Span, Span)>,
    /// When the last has ended.
    pub makespan: Span,
    /// Units times the time in which they have nothing to do before that.
    pub idle_unit_us: f64,
}

impl MixSchedule {
    /// Says whether every step of every model runs once, in order, on units of the device.
    pub fn check(&self, mix: &Mix) -> Result<(), ScheduleError> {
        let device = UnitMask::range(0, mix.unit_count());
        let mut done = vec![0; mix.models().len()];
        let mut forms: Vec<Option<Form>> = vec![None; mix.models().len()];
        for (place, segment) in self.segments.iter().enumerate() {
            let is_known = segment.model < done.len()
                && !segment.steps.is_empty()
                && !segment.units.is_empty()
                && segment.units.without(device).is_empty();
            if !is_known {
                return Err(ScheduleError::Segment(place));
            }
            if done[segment.model] != segment.steps.start {
                return Err(ScheduleError::Steps(segment.model));
            }
            done[segment.model] = segment.steps.end;
            let is_known = mix.models()[segment.model].forms().any(|form| form == segment.form);
            let form = *forms[segment.model].get_or_insert(segment.form);
            if !is_known || form != segment.form {
                return Err(ScheduleError::Form(segment.model));
            }
        }
        let missing =
            mix.models().iter().zip(&done).position(|(model, &end)| end != model.step_count());
        missing.map_or(Ok(()), |model| Err(ScheduleError::Steps(model)))
    }

    /// For each segment, those before it that it waits for: its model's last, and the last on each of its units that is no
    /// filler.
    pub fn dependencies(&self) -> Vec<Vec<usize>> {
        let waits = |place: usize| {
            let segment = &self.segments[place];
            let mut units = if segment.is_filler { UnitMask::EMPTY } else { segment.units };
            let mut has_own = false;
            let mut found = Vec::new();
            for (before, earlier) in self.segments[..place].iter().enumerate().rev() {
                let is_own = !has_own && earlier.model == segment.model;
                let has_units = !earlier.is_filler && !earlier.units.is_disjoint(units);
                if is_own || has_units {
                    found.push(before);
                }
                has_own |= is_own;
                if has_units {
                    units = units.without(earlier.units);
                }
                if has_own && units.is_empty() {
                    break;
                }
            }
            found
        };
        (0..self.segments.len()).map(waits).collect()
    }

    /// When everything runs, as far as the times of steps tell. Fillers are taken to run at their best on all that the others
    /// leave, and to end together.
    pub fn timeline(&self, mix: &Mix) -> Timeline {
        let mut ends = vec![0.0f64; mix.models().len()];
        let mut free = vec![0.0f64; mix.unit_count() as usize];
        let mut segments = Vec::with_capacity(self.segments.len());
        let (mut makespan, mut busy, mut filling) = (0.0f64, 0.0f64, 0.0f64);
        for segment in &self.segments {
            let model = &mix.models()[segment.model];
            let Range { start, end: past } = segment.steps;
            if segment.is_filler {
                filling += model.least_unit_us(segment.form, start, past);
                let alone = model.between_us(segment.form, mix.unit_count(), start, past);
                makespan = makespan.max(alone);
                segments.push((Span::ZERO, Span::ZERO));
                continue;
            }
            let units = segment.units.iter().map(|unit| free[unit as usize]);
            let begin = units.fold(ends[segment.model], f64::max);
            let size = mix.size_of(segment.units);
            let end = begin + model.between_us(segment.form, size, start, past);
            ends[segment.model] = end;
            segment.units.iter().for_each(|unit| free[unit as usize] = end);
            busy += f64::from(segment.units.len()) * (end - begin);
            makespan = makespan.max(end);
            segments.push((Span::from_us(begin), Span::from_us(end)));
        }
        busy += filling;
        makespan = makespan.max(busy / f64::from(mix.unit_count()));
        let fillers = self.segments.iter().zip(&mut segments).filter(|(of, _)| of.is_filler);
        fillers.for_each(|(_, (_, end))| *end = Span::from_us(makespan));
        let idle_unit_us = f64::from(mix.unit_count()) * makespan - busy;
        Timeline { segments, makespan: Span::from_us(makespan), idle_unit_us }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{MixModel, StepTimes};
    use super::*;

    /// Models whose steps take so many microseconds on one unit, and gain from more up to a number of them.
    pub(in super::super) fn mix(models: &[(&[f64], u32)], unit_count: u32) -> Mix {
        let model = |(number, &(steps, useful)): (usize, &(&[f64], u32))| {
            let times = |units: u32| {
                let speed = f64::from(units.min(useful));
                let steps: Vec<Span> = steps.iter().map(|us| Span::from_us(us / speed)).collect();
                let whole = Span::from_us(steps.iter().map(|step| step.us()).sum());
                StepTimes { chunks: 1, units, steps, whole }
            };
            let timed: Vec<StepTimes> = (1..=unit_count).map(times).collect();
            MixModel::new(&format!("model {number}"), &timed, &[], unit_count).unwrap()
        };
        Mix::new(models.iter().enumerate().map(model).collect(), unit_count).unwrap()
    }

    fn segment(model: usize, steps: Range<usize>, units: Range<u32>) -> Segment {
        let units = UnitMask::range(units.start, units.end - units.start);
        Segment { model, steps, form: Form::WHOLE, units, is_filler: false }
    }

    #[test]
    fn chunks_have_equal_and_disjoint_shares() {
        let shares = |units: Range<u32>, chunks: u32| {
            let form = Form { chunks, until: 1 };
            Segment { form, ..segment(0, 0..1, units) }.shares()
        };
        assert_eq!(shares(1..8, 2), [UnitMask::range(1, 3), UnitMask::range(4, 3)]);
        assert_eq!(shares(0..7, 7).len(), 7);
        assert_eq!(shares(3..5, 8), [UnitMask::range(3, 1), UnitMask::range(4, 1)]);
        assert_eq!(shares(0..7, 1), []);
    }

    #[test]
    fn a_filler_has_what_others_leave_and_nobody_waits_for_it() {
        let mix = mix(&[(&[10.0, 10.0], 2), (&[40.0], 4)], 4);
        let mut filler = segment(1, 0..1, 0..4);
        filler.is_filler = true;
        let schedule =
            MixSchedule { segments: vec![filler, segment(0, 0..1, 0..2), segment(0, 1..2, 0..4)] };
        schedule.check(&mix).unwrap();
        assert_eq!(schedule.dependencies(), [vec![], vec![], vec![1]]);
        // 10 us on two units, and 5 us on four that gain nothing from it; 40 unit-us are left to do on what is idle.
        let timeline = schedule.timeline(&mix);
        assert_eq!(timeline.makespan.us(), (2.0 * 5.0 + 4.0 * 5.0 + 40.0) / 4.0);
        assert_eq!(timeline.idle_unit_us, 0.0);
        assert_eq!(timeline.segments[0], (Span::ZERO, timeline.makespan));
    }

    #[test]
    fn a_segment_waits_for_its_model_and_for_its_units() {
        let mix = mix(&[(&[10.0, 10.0], 4), (&[40.0], 4)], 4);
        let schedule = MixSchedule {
            segments: vec![segment(0, 0..1, 0..2), segment(1, 0..1, 2..4), segment(0, 1..2, 0..4)],
        };
        schedule.check(&mix).unwrap();
        assert_eq!(schedule.dependencies(), [vec![], vec![], vec![1, 0]]);
        let timeline = schedule.timeline(&mix);
        let us = |(begin, end): &(Span, Span)| (begin.us(), end.us());
        let times: Vec<(f64, f64)> = timeline.segments.iter().map(us).collect();
        assert_eq!(times, [(0.0, 5.0), (0.0, 20.0), (20.0, 22.5)]);
        assert_eq!(timeline.makespan.us(), 22.5);
        // Two units from 5 to 20.
        assert_eq!(timeline.idle_unit_us, 30.0);
    }

    #[test]
    fn what_lies_before_a_wait_is_not_waited_for_again() {
        let schedule = MixSchedule {
            segments: vec![segment(0, 0..1, 0..1), segment(0, 1..2, 0..1), segment(1, 0..1, 0..1)],
        };
        assert_eq!(schedule.dependencies(), [vec![], vec![0], vec![1]]);
    }

    #[test]
    fn schedules_of_something_else_are_refused() {
        let mix = mix(&[(&[10.0, 10.0], 4)], 2);
        let of = |segments| MixSchedule { segments }.check(&mix);
        assert_eq!(of(vec![segment(0, 0..1, 0..1)]), Err(ScheduleError::Steps(0)));
        assert_eq!(of(vec![segment(0, 1..2, 0..1)]), Err(ScheduleError::Steps(0)));
        assert_eq!(of(vec![segment(0, 0..2, 1..3)]), Err(ScheduleError::Segment(0)));
        assert_eq!(of(vec![segment(1, 0..2, 0..1)]), Err(ScheduleError::Segment(0)));
        assert_eq!(of(vec![segment(0, 0..2, 0..2)]), Ok(()));
    }
}
