//! What a mix is: models, and how long their steps take on every number of units.

use thiserror::Error;

use crate::{MAX_UNITS, Span, UnitMask};

/// How long a model took on a number of units: each of its steps by itself, and all of them in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTimes {
    /// Parts of its batch that were computed side by side, each on an equal share of the units; one is all of it.
    pub chunks: u32,
    /// The number of units.
    pub units: u32,
    /// Each step, in order.
    pub steps: Vec<Span>,
    /// The whole model. Steps in a row take less than each by itself, since one begins while another ends. Zero where it was
    /// not timed.
    pub whole: Span,
}

/// How a model's batch is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// Parts of the batch that steps compute by themselves; one is all of it.
    pub chunks: u32,
    /// Steps before this one are computed in chunks, and those from it on at once.
    pub until: usize,
}

impl Form {
    /// The batch at once.
    pub const WHOLE: Self = Self { chunks: 1, until: 0 };
}

/// Why a mix is none.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MixError {
    /// It has no models, or a device without units.
    #[error("a mix needs a model and a device with 1 to {MAX_UNITS} units")]
    Empty,
    /// A model was timed nowhere, or not at the same steps everywhere.
    #[error("{0} has no steps, or was not timed at the same steps on every number of units")]
    Steps(String),
}

/// A model of a mix.
#[derive(Clone, Debug)]
pub struct MixModel {
    name: String,
    step_count: usize,
    /// The batch at once, and then each number of chunks that is of use.
    forms: Vec<FormTimes>,
}

/// How long a model takes in one of its forms.
#[derive(Clone, Debug)]
struct FormTimes {
    form: Form,
    /// For every number of units from one on: when each step begins, and when the last ends, in microseconds.
    begins_us: Vec<Vec<f64>>,
    /// Units times time of all steps before each, where each has the number of units that it makes the most of.
    least_unit_us: Vec<f64>,
}

impl MixModel {
    /// A model that was timed on some numbers of units of a device that has so many, in chunks or at once. What lies between is
    /// interpolated, and more units never take longer. `joining_us` is, for each step, how long it takes to put chunks together
    /// for it; chunks that gain nothing anywhere are left out.
    pub fn new(
        name: &str,
        timed: &[StepTimes],
        joining_us: &[f64],
        unit_count: u32,
    ) -> Result<Self, MixError> {
        let wrong = || MixError::Steps(name.to_string());
        let of = |chunks: u32| {
            let mut of: Vec<&StepTimes> =
                timed.iter().filter(|times| times.chunks == chunks && times.units > 0).collect();
            of.sort_by_key(|times| times.units);
            of
        };
        let at_once = of(1);
        let step_count = at_once.first().ok_or_else(wrong)?.steps.len();
        if step_count == 0 || timed.iter().any(|times| times.steps.len() != step_count) {
            return Err(wrong());
        }
        let at_once = steps_us(&at_once, 1, unit_count);
        let mut forms = vec![FormTimes::new(Form::WHOLE, &at_once)];
        let mut counts: Vec<u32> = timed.iter().map(|times| times.chunks).collect();
        counts.sort_unstable();
        counts.dedup();
        for chunks in counts.into_iter().filter(|&chunks| chunks > 1) {
            let in_chunks = steps_us(&of(chunks), chunks, unit_count);
            let (until, joined) = joined(&in_chunks, &at_once, joining_us);
            if until > 0 {
                forms.push(FormTimes::new(Form { chunks, until }, &joined));
            }
        }
        Ok(Self { name: name.to_string(), step_count, forms })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many steps it has.
    pub fn step_count(&self) -> usize {
        self.step_count
    }

    /// How its batch can be computed: at once first.
    pub fn forms(&self) -> impl ExactSizeIterator<Item = Form> {
        self.forms.iter().map(|times| times.form)
    }

    /// How long the whole model takes on a number of units in one of its forms.
    pub fn time(&self, form: Form, units: u32) -> Span {
        Span::from_us(self.between_us(form, units, 0, self.step_count))
    }

    /// Units times time that steps from one on up to, not including, another take at least, where each has the number of units
    /// that it makes the most of.
    pub(super) fn least_unit_us(&self, form: Form, first: usize, end: usize) -> f64 {
        let least = &self.times(form).least_unit_us;
        least[end] - least[first]
    }

    /// How long steps take from one on up to, not including, another, in microseconds.
    pub(super) fn between_us(&self, form: Form, units: u32, first: usize, end: usize) -> f64 {
        let begins = self.times(form).begins(units);
        begins[end] - begins[first]
    }

    /// The step that is to begin so many microseconds after `first` began, or the first one after that.
    pub(super) fn step_after(&self, form: Form, units: u32, first: usize, us: f64) -> usize {
        let begins = self.times(form).begins(units);
        let until = begins[first] + us;
        // What differs by rounding alone is the same instant.
        begins.partition_point(|&begin| begin < until - 1e-6).clamp(first, self.step_count)
    }

    /// Those of a form that it does not have are those of the batch at once.
    fn times(&self, form: Form) -> &FormTimes {
        self.forms.iter().find(|times| times.form == form).unwrap_or(&self.forms[0])
    }
}

impl FormTimes {
    /// Of steps' times on each number of units from one on.
    fn new(form: Form, steps_us: &[Vec<f64>]) -> Self {
        let begins = |steps: &Vec<f64>| {
            let mut begins = vec![0.0];
            for (step, us) in steps.iter().enumerate() {
                begins.push(begins[step] + us);
            }
            begins
        };
        let least = |step: usize| {
            let unit_us =
                steps_us.iter().zip(1..).map(|(steps, units)| f64::from(units) * steps[step]);
            unit_us.fold(f64::INFINITY, f64::min)
        };
        let least = (0..steps_us.first().map_or(0, Vec::len)).map(least).collect();
        let begins_us = steps_us.iter().map(begins).collect();
        Self { form, begins_us, least_unit_us: begins(&least) }
    }

    fn begins(&self, units: u32) -> &[f64] {
        let place = (units.max(1) as usize).min(self.begins_us.len()) - 1;
        &self.begins_us[place]
    }
}

/// The time of each step on every number of units, of those that were timed in so many chunks. Units that are no multiple of
/// the chunks are left over; with fewer units than chunks, some have to wait.
fn steps_us(timed: &[&StepTimes], chunks: u32, unit_count: u32) -> Vec<Vec<f64>> {
    let scaled: Vec<(u32, Vec<f64>)> =
        timed.iter().map(|times| (times.units, in_a_row_us(times))).collect();
    let step_count = timed[0].steps.len();
    let mut fastest = vec![f64::INFINITY; step_count];
    let on = |units: u32| {
        let (used, rounds) = match units / chunks {
            0 => (chunks, chunks.div_ceil(units)),
            each => (each * chunks, 1),
        };
        for (step, fastest) in fastest.iter_mut().enumerate() {
            let us = interpolated_us(&scaled, used, step) * f64::from(rounds);
            *fastest = fastest.min(us);
        }
        fastest.clone()
    };
    (1..=unit_count).map(on).collect()
}

/// Where chunks are best put together, and the times of steps with that: those before it in chunks, those from it on at once.
fn joined(
    in_chunks: &[Vec<f64>],
    at_once: &[Vec<f64>],
    joining_us: &[f64],
) -> (usize, Vec<Vec<f64>>) {
    let step_count = at_once[0].len();
    let joining = |until: usize| joining_us.get(until).copied().unwrap_or(0.0);
    // Few units are what a model has where others have the rest; what matters is how they compare.
    let mean_us = |until: usize| {
        let on = |(chunked, whole): (&Vec<f64>, &Vec<f64>)| {
            let all: f64 = whole.iter().sum();
            let before: f64 = chunked[..until].iter().sum();
            (before + whole[until..].iter().sum::<f64>() + joining(until)) / all
        };
        in_chunks.iter().zip(at_once).skip(at_once.len() / 4).map(on).sum::<f64>()
    };
    let until = (1..=step_count).min_by(|&a, &b| mean_us(a).total_cmp(&mean_us(b)));
    let until = until.unwrap_or(0);
    let mix = |(chunked, whole): (&Vec<f64>, &Vec<f64>)| {
        let mut steps = [&chunked[..until], &whole[until..]].concat();
        if let Some(first) = steps.get_mut(until) {
            *first += joining(until);
        }
        steps
    };
    let times: Vec<Vec<f64>> = in_chunks.iter().zip(at_once).map(mix).collect();
    let sum = |steps: &Vec<f64>| steps.iter().sum::<f64>();
    let gains = times.iter().zip(at_once).any(|(form, whole)| sum(form) < sum(whole));
    (if gains { until } else { 0 }, times)
}

/// Times of steps that add up to the time of all in a row.
fn in_a_row_us(times: &StepTimes) -> Vec<f64> {
    let sum: f64 = times.steps.iter().map(|step| step.us()).sum();
    let share = if sum > 0.0 && times.whole.us() > 0.0 { times.whole.us() / sum } else { 1.0 };
    times.steps.iter().map(|step| step.us() * share).collect()
}

/// A step's time on a number of units: between two that were timed, along the inverse of units; outside of them, that of the
/// nearest, which fewer units than were ever timed share.
fn interpolated_us(timed: &[(u32, Vec<f64>)], units: u32, step: usize) -> f64 {
    let after = timed.iter().position(|&(size, _)| size >= units);
    match after {
        Some(0) => timed[0].1[step] * f64::from(timed[0].0) / f64::from(units),
        None => timed[timed.len() - 1].1[step],
        Some(after) => {
            let ((few, slow), (many, fast)) = (&timed[after - 1], &timed[after]);
            let inverse = |units: u32| 1.0 / f64::from(units);
            let share = (inverse(*few) - inverse(units)) / (inverse(*few) - inverse(*many));
            slow[step] + (fast[step] - slow[step]) * share
        }
    }
}

/// Models that run at the same time, again and again, and the device that they share.
#[derive(Clone, Debug)]
pub struct Mix {
    models: Vec<MixModel>,
    unit_count: u32,
    /// As many of the others as the last unit is as large as.
    last_unit: u32,
    can_fill: bool,
}

impl Mix {
    /// Models that were made for a device of so many units.
    pub fn new(models: Vec<MixModel>, unit_count: u32) -> Result<Self, MixError> {
        if models.is_empty() || !(1..=MAX_UNITS).contains(&unit_count) {
            return Err(MixError::Empty);
        }
        Ok(Self { models, unit_count, last_unit: 1, can_fill: false })
    }

    /// The same on a device whose last unit is as large as so many of the others.
    #[must_use]
    pub fn with_last_unit_of(mut self, units: u32) -> Self {
        self.last_unit = units.max(1);
        self
    }

    /// The same on a device where a model can have units beside others, and leave them as much as they want.
    #[must_use]
    pub fn with_fillers(mut self) -> Self {
        self.can_fill = true;
        self
    }

    /// Whether models can fill what others leave.
    pub fn can_fill(&self) -> bool {
        self.can_fill
    }

    /// Its models.
    pub fn models(&self) -> &[MixModel] {
        &self.models
    }

    /// Units of the device.
    pub fn unit_count(&self) -> u32 {
        self.unit_count
    }

    /// The number of units, as models are timed on them, that some units are as large as.
    pub fn size_of(&self, units: UnitMask) -> u32 {
        let has_last = !units.is_disjoint(UnitMask::range(self.unit_count - 1, 1));
        let size = units.len() + if has_last { self.last_unit - 1 } else { 0 };
        size.min(self.unit_count)
    }

    /// What no schedule can take less than, as far as the times of steps tell: all units are busy with what each step makes the
    /// most of, or a model has all of them.
    pub fn bound(&self) -> Span {
        let whole = |model: &MixModel| {
            let forms = model.forms().map(|form| model.least_unit_us(form, 0, model.step_count));
            forms.fold(f64::INFINITY, f64::min)
        };
        let unit_us: f64 = self.models.iter().map(whole).sum();
        let longest = self.models.iter().map(|model| {
            let whole = |form| model.time(form, self.unit_count).us();
            model.forms().map(whole).fold(f64::INFINITY, f64::min)
        });
        let size = self.unit_count + self.last_unit - 1;
        Span::from_us(longest.fold(unit_us / f64::from(size), f64::max))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{MixSchedule, Segment};
    use super::*;

    fn times(units: u32, steps: &[f64], whole: f64) -> StepTimes {
        let steps = steps.iter().map(|&us| Span::from_us(us)).collect();
        StepTimes { chunks: 1, units, steps, whole: Span::from_us(whole) }
    }

    #[test]
    fn what_was_timed_is_found_again_and_adds_up_to_the_whole() {
        let timed = [times(1, &[40.0, 60.0], 80.0), times(4, &[10.0, 30.0], 40.0)];
        let model = MixModel::new("a", &timed, &[], 8).unwrap();
        assert_eq!(model.between_us(Form::WHOLE, 1, 0, 2), 80.0);
        assert_eq!(model.between_us(Form::WHOLE, 1, 0, 1), 32.0);
        assert_eq!(model.between_us(Form::WHOLE, 4, 1, 2), 30.0);
        // Past what was timed nothing is gained.
        assert_eq!(model.between_us(Form::WHOLE, 8, 0, 2), 40.0);
        // A third of the way from one unit to a quarter of the time that it takes.
        let between = model.between_us(Form::WHOLE, 2, 0, 1);
        assert!(between > 10.0 && between < 32.0);
    }

    #[test]
    fn steps_begin_where_those_before_end() {
        let model = MixModel::new("a", &[times(1, &[10.0, 20.0, 30.0], 60.0)], &[], 1).unwrap();
        assert_eq!(model.step_after(Form::WHOLE, 1, 0, 0.0), 0);
        assert_eq!(model.step_after(Form::WHOLE, 1, 0, 10.0), 1);
        assert_eq!(model.step_after(Form::WHOLE, 1, 0, 11.0), 2);
        assert_eq!(model.step_after(Form::WHOLE, 1, 1, 1000.0), 3);
    }

    #[test]
    fn a_larger_last_unit_counts_as_several() {
        let timed = [times(1, &[80.0], 80.0), times(2, &[40.0], 40.0), times(4, &[20.0], 20.0)];
        let model = MixModel::new("a", &timed, &[], 4).unwrap();
        let even = Mix::new(vec![model], 4).unwrap();
        let mix = even.clone().with_last_unit_of(2);
        let size = |first, count| mix.size_of(UnitMask::range(first, count));
        assert_eq!([size(0, 1), size(0, 3), size(3, 1), size(2, 2), size(0, 4)], [1, 3, 2, 3, 4]);
        assert_eq!(even.size_of(UnitMask::range(3, 1)), 1);
        // 80 us of work for what is as large as five units, but no model is faster than on all of them.
        assert_eq!((even.bound().us(), mix.bound().us()), (20.0, 20.0));
        let segment =
            |units| Segment { model: 0, steps: 0..1, form: Form::WHOLE, units, is_filler: false };
        let on = |units| MixSchedule { segments: vec![segment(units)] }.timeline(&mix).makespan;
        assert_eq!(on(UnitMask::range(3, 1)).us(), 40.0);
        assert_eq!(on(UnitMask::range(0, 1)).us(), 80.0);
    }

    #[test]
    fn what_was_not_timed_is_refused() {
        assert!(MixModel::new("a", &[], &[], 4).is_err());
        let unlike = [times(1, &[1.0], 1.0), times(2, &[1.0, 2.0], 3.0)];
        assert!(MixModel::new("a", &unlike, &[], 4).is_err());
        assert_eq!(Mix::new(Vec::new(), 4).unwrap_err(), MixError::Empty);
    }

    #[test]
    fn chunks_are_put_together_where_that_is_best() {
        let in_chunks = |units: u32, steps: &[f64]| StepTimes {
            chunks: 2,
            ..times(units, steps, steps.iter().sum())
        };
        let timed = [
            times(1, &[80.0, 80.0, 40.0], 200.0),
            times(2, &[50.0, 50.0, 20.0], 120.0),
            times(4, &[40.0, 40.0, 10.0], 90.0),
            in_chunks(2, &[40.0, 40.0, 40.0]),
            in_chunks(4, &[25.0, 25.0, 25.0]),
        ];
        let model = MixModel::new("a", &timed, &[0.0, 0.0, 3.0], 4).unwrap();
        let form = Form { chunks: 2, until: 2 };
        assert_eq!(model.forms().collect::<Vec<_>>(), [Form::WHOLE, form]);
        assert_eq!(model.between_us(form, 4, 0, 3), 25.0 + 25.0 + 3.0 + 10.0);
        assert_eq!(model.between_us(form, 2, 0, 2), 80.0);
        // A third unit is left over, and on one they wait for each other.
        assert_eq!(model.between_us(form, 3, 0, 2), 80.0);
        assert_eq!(model.between_us(form, 1, 0, 2), 160.0);
        // Where putting together costs more than it gains, there are none.
        let model = MixModel::new("a", &timed, &[500.0, 500.0, 500.0], 4).unwrap();
        assert!(model.forms().all(|form| form.until != 2));
    }

    proptest! {
        #[test]
        fn more_units_never_take_longer(
            timed in prop::collection::vec((1u32..20, prop::collection::vec(1.0f64..500.0, 5)), 1..6),
        ) {
            let timed: Vec<StepTimes> = timed
                .iter()
                .map(|(units, steps)| times(*units, steps, steps.iter().sum()))
                .collect();
            let model = MixModel::new("a", &timed, &[], 24).unwrap();
            for units in 1..24 {
                for step in 0..5 {
                    let [fewer, more] =
                        [units, units + 1].map(|units| model.between_us(Form::WHOLE, units, step, step + 1));
                    prop_assert!(more <= fewer + 1e-9, "{units} {step}: {fewer} {more}");
                }
            }
        }
    }
}
