//! Timing the steps of a mix's models, piece by piece.

use std::collections::VecDeque;

use weft_device::{CompiledMix, MIX_CHUNKS, UnitSet};
use weft_scheduler::regulate::{Form, Mix, MixModel, MixSchedule, Segment, StepTimes};
use weft_scheduler::{Span, UnitMask};

use super::RegulationError;
use super::median::{MedianRun, median};
use super::segments::device_units;
use super::subject::Subject;

/// Numbers of units that steps are timed on, as far as there are so many; all of them besides.
const TIMED_UNITS: [u32; 7] = [1, 2, 3, 4, 6, 8, 11];

/// Numbers of units of each chunk that chunks are timed on.
const CHUNK_UNITS: [u32; 4] = [1, 2, 4, 7];

/// What a model is timed in: chunks of its batch, each on so many units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    model: usize,
    chunks: u32,
    each: u32,
}

/// All models in all cases.
pub(super) struct Timing {
    /// Those that are missing; the first is being timed.
    cases: VecDeque<Case>,
    /// Of the first case: its steps, each time that they were timed.
    steps_us: Vec<Vec<f64>>,
    /// Of the first case, once its steps are timed: all of them in a row.
    whole: Option<(CompiledMix, MedianRun)>,
    /// Of each model.
    timed: Vec<Vec<StepTimes>>,
}

impl Timing {
    pub(super) fn new(subject: &Subject) -> Self {
        let can_chunk = |model, chunks: u32| subject.mix.can_chunk(model, chunks as usize);
        let count = subject.models.len();
        Self {
            cases: cases(count, subject.unit_count(), can_chunk),
            steps_us: Vec::new(),
            whole: None,
            timed: vec![Vec::new(); count],
        }
    }

    /// What is timed next, in words.
    pub(super) fn progress(&self, subject: &Subject) -> String {
        let Some(Case { model, chunks, each }) = self.cases.front() else { return String::new() };
        let parts = if *chunks > 1 { format!(" in {chunks} chunks") } else { String::new() };
        let (units, of) = (chunks * each, subject.unit_count());
        format!("timing {}{parts} on {units} of {of} units", subject.models[*model].name)
    }

    /// Goes on by one piece: the mix, where it is timed now.
    pub(super) fn advance(
        &mut self,
        subject: &mut Subject,
    ) -> Result<Option<Mix>, RegulationError> {
        if let Some(&case) = self.cases.front() {
            let timed = self.advance_case(case, subject)?;
            let Some(timed) = timed else { return Ok(None) };
            self.timed[case.model].push(timed);
            self.cases.pop_front();
            (self.steps_us, self.whole) = (Vec::new(), None);
        }
        if !self.cases.is_empty() {
            return Ok(None);
        }
        self.mix(subject).map(Some)
    }

    fn advance_case(
        &mut self,
        Case { model, chunks, each }: Case,
        subject: &mut Subject,
    ) -> Result<Option<StepTimes>, RegulationError> {
        if self.steps_us.len() < subject.mix.timings().max(1) {
            let units = device_units(UnitMask::range(0, each), subject.mix.units());
            let times = subject.mix.time_steps_us(model, chunks as usize, &units)?;
            self.steps_us.push(times);
            return Ok(None);
        }
        let units = chunks * each;
        if self.whole.is_none() {
            let count = subject.mix.step_count(model);
            // One chunk by itself does not tell how long it takes beside the others: all of them, to the end.
            let form = if chunks > 1 { Form { chunks, until: count } } else { Form::WHOLE };
            let (steps, units) = (0..count, UnitMask::range(0, units));
            let segment = Segment { model, steps, form, units, is_filler: false };
            let compiled = subject.compile(&MixSchedule { segments: vec![segment] })?;
            self.whole = Some((compiled, MedianRun::default()));
        }
        let Some((compiled, runs)) = &mut self.whole else { return Ok(None) };
        let Some(us) = subject.run(compiled, runs)? else { return Ok(None) };
        let steps = medians(&self.steps_us).into_iter().map(Span::from_us).collect();
        Ok(Some(StepTimes { chunks, units, steps, whole: Span::from_us(us) }))
    }

    fn mix(&self, subject: &Subject) -> Result<Mix, RegulationError> {
        let unit_count = subject.unit_count();
        let mut models = Vec::with_capacity(self.timed.len());
        for (place, timed) in self.timed.iter().enumerate() {
            let joining_us = subject.mix.joining_us(place);
            let name = &subject.models[place].name;
            models.push(MixModel::new(name, timed, &joining_us, unit_count)?);
        }
        // A unit that is several of the device's is as large as several of the others.
        let [first, last] = [subject.mix.units().first(), subject.mix.units().last()]
            .map(|of| of.map_or(1, UnitSet::len));
        let last_unit = (last / first.max(1)) as u32;
        let mix = Mix::new(models, unit_count)?.with_last_unit_of(last_unit);
        Ok(if subject.mix.can_fill() { mix.with_fillers() } else { mix })
    }
}

/// What all models are timed in, one after another.
fn cases(models: usize, unit_count: u32, can_chunk: impl Fn(usize, u32) -> bool) -> VecDeque<Case> {
    let counts = TIMED_UNITS.into_iter().filter(|&count| count < unit_count);
    let counts: Vec<u32> = counts.chain([unit_count]).collect();
    let mut cases = VecDeque::new();
    for model in 0..models {
        cases.extend(counts.iter().map(|&each| Case { model, chunks: 1, each }));
        let possible = MIX_CHUNKS
            .map(|chunks| chunks as u32)
            .into_iter()
            .filter(|&chunks| chunks <= unit_count);
        for chunks in possible.filter(|&chunks| can_chunk(model, chunks)) {
            let units = CHUNK_UNITS.into_iter().filter(|each| each * chunks <= unit_count);
            cases.extend(units.map(|each| Case { model, chunks, each }));
        }
    }
    cases
}

/// Of each step, the median of its times.
fn medians(times_us: &[Vec<f64>]) -> Vec<f64> {
    let count = times_us.first().map_or(0, Vec::len);
    let of = |step: usize| {
        let times: Vec<f64> =
            times_us.iter().filter_map(|times| times.get(step).copied()).collect();
        median(&times)
    };
    (0..count).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_timed_on_few_units_on_all_and_in_the_chunks_that_they_can_be_in() {
        let found = cases(2, 5, |model, chunks| model == 1 && chunks <= 4);
        let of = |model: usize| {
            let of = found.iter().filter(move |case| case.model == model);
            of.map(|case| (case.chunks, case.each)).collect::<Vec<_>>()
        };
        let at_once = [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5)];
        assert_eq!(of(0), at_once);
        assert_eq!(of(1), [&at_once[..], &[(2, 1), (2, 2), (4, 1)]].concat());
        assert_eq!(cases(1, 1, |_, _| true), [Case { model: 0, chunks: 1, each: 1 }]);
    }

    #[test]
    fn each_step_has_its_own_median() {
        assert_eq!(medians(&[vec![1.0, 9.0], vec![3.0, 7.0], vec![2.0, 80.0]]), [2.0, 9.0]);
    }
}
