//! What is searched: stages, in each of which every model has a number of units.

use super::{Form, Mix, MixSchedule, Segment};
use crate::UnitMask;

/// The units of every model, until one of them has ended, or a part of the way there.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// For each model; none where it waits.
    pub units: Vec<u32>,
    /// Which part of the time until the first of them ends: from 0 to 1.
    pub until: f64,
}

/// Stages one after another. Where the last has ended and steps are left, models that have any share the device evenly.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    /// In order.
    pub stages: Vec<Stage>,
    /// Of each model, whether it fills what the others leave: it has no part in the stages.
    pub fillers: Vec<bool>,
    /// Of each model, how its batch is computed, unless it fills.
    pub forms: Vec<Form>,
}

impl Stages {
    /// One stage with as many units for each model.
    pub fn even(mix: &Mix) -> Self {
        let units = evenly(mix.unit_count(), &vec![true; mix.models().len()]);
        Self::of(vec![Stage { units, until: 1.0 }], mix)
    }

    /// Each model on the whole device, one after another.
    pub fn in_turns(mix: &Mix) -> Self {
        let count = mix.models().len();
        let alone = |model: usize| {
            let units = (0..count).map(|other| if other == model { mix.unit_count() } else { 0 });
            Stage { units: units.collect(), until: 1.0 }
        };
        Self::of((0..count).map(alone).collect(), mix)
    }

    /// Stages of a mix without fillers.
    pub fn of(stages: Vec<Stage>, mix: &Mix) -> Self {
        let count = mix.models().len();
        Self { stages, fillers: vec![false; count], forms: vec![Form::WHOLE; count] }
    }

    /// The segments that they stand for. A model keeps the units that it has, as far as it may, and takes those that are free
    /// first; it changes over where a step ends.
    pub fn schedule(&self, mix: &Mix) -> MixSchedule {
        let mut unfolding = Unfolding::new(mix, self);
        for stage in &self.stages {
            unfolding.run(&stage.units, stage.until);
        }
        while unfolding.has_steps() {
            let has_steps: Vec<bool> =
                (0..mix.models().len()).map(|of| unfolding.is_left(of)).collect();
            unfolding.run(&evenly(mix.unit_count(), &has_steps), 1.0);
        }
        let fillers = (0..mix.models().len()).filter(|&model| self.fillers[model]);
        let all = UnitMask::range(0, mix.unit_count());
        let filler = |model: usize| {
            let steps = 0..mix.models()[model].step_count();
            Segment { model, steps, form: Form::WHOLE, units: all, is_filler: true }
        };
        MixSchedule { segments: fillers.map(filler).chain(unfolding.segments).collect() }
    }
}

/// Units for those who want some, as evenly as can be; with too few, the first have one each.
fn evenly(unit_count: u32, wants: &[bool]) -> Vec<u32> {
    let mut left = unit_count;
    let mut others = wants.iter().filter(|&&wants| wants).count() as u32;
    let share = |&wants: &bool| {
        if !wants {
            return 0;
        }
        let units = left.div_ceil(others.max(1));
        left -= units;
        others -= 1;
        units
    };
    wants.iter().map(share).collect()
}

/// A schedule in the making.
struct Unfolding<'a> {
    mix: &'a Mix,
    of: &'a Stages,
    segments: Vec<Segment>,
    /// Of each model: the step that is next, when it can begin, and the units of its last segment.
    next: Vec<usize>,
    ready_us: Vec<f64>,
    units: Vec<UnitMask>,
    /// When each unit is free.
    free_us: Vec<f64>,
}

impl<'a> Unfolding<'a> {
    fn new(mix: &'a Mix, of: &'a Stages) -> Self {
        let count = mix.models().len();
        Self {
            mix,
            of,
            segments: Vec::new(),
            next: vec![0; count],
            ready_us: vec![0.0; count],
            units: vec![UnitMask::EMPTY; count],
            free_us: vec![0.0; mix.unit_count() as usize],
        }
    }

    fn is_left(&self, model: usize) -> bool {
        !self.of.fillers[model] && self.next[model] < self.mix.models()[model].step_count()
    }

    fn has_steps(&self) -> bool {
        (0..self.next.len()).any(|model| self.is_left(model))
    }

    /// Runs models on so many units each until the first of them has ended, or a part of the way there.
    fn run(&mut self, wanted: &[u32], until: f64) {
        let given = self.give(wanted);
        if given.is_empty() {
            return;
        }
        let form = |model: usize| self.of.forms[model];
        let begins: Vec<f64> =
            given.iter().map(|&(model, units)| self.begin_us(model, units)).collect();
        let ends = given.iter().zip(&begins).map(|(&(model, units), begin)| {
            let of = &self.mix.models()[model];
            let size = self.mix.size_of(units);
            begin + of.between_us(form(model), size, self.next[model], of.step_count())
        });
        let first_begin = begins.iter().copied().fold(f64::INFINITY, f64::min);
        let first_end = ends.fold(f64::INFINITY, f64::min);
        let end = first_begin + (first_end - first_begin) * until.clamp(0.0, 1.0);
        for (&(model, units), begin) in given.iter().zip(begins) {
            let of = &self.mix.models()[model];
            let (form, first) = (self.of.forms[model], self.next[model]);
            let size = self.mix.size_of(units);
            let past = of.step_after(form, size, first, end - begin);
            // Something happens in every stage.
            let past = if past == first { first + 1 } else { past };
            let end = begin + of.between_us(form, size, first, past);
            self.next[model] = past;
            self.ready_us[model] = end;
            units.iter().for_each(|unit| self.free_us[unit as usize] = end);
            self.units[model] = units;
            self.add(Segment { model, steps: first..past, form, units, is_filler: false });
        }
    }

    /// The units of each model that has steps and is to have units: what it had before, then what is free first.
    fn give(&self, wanted: &[u32]) -> Vec<(usize, UnitMask)> {
        let mut free = UnitMask::range(0, self.mix.unit_count());
        let mut given: Vec<(usize, UnitMask)> = Vec::new();
        for (model, &units) in wanted.iter().enumerate() {
            if units == 0 || !self.is_left(model) {
                continue;
            }
            // Two may have had the same unit, one after the other.
            let had = self.units[model].without(self.units[model].without(free));
            let kept: UnitMask = had.iter().take(units as usize).collect();
            free = free.without(kept);
            given.push((model, kept));
        }
        for (model, units) in &mut given {
            let missing = wanted[*model].saturating_sub(units.len());
            let mut by_time: Vec<u32> = free.iter().collect();
            by_time.sort_by(|&a, &b| self.free_us[a as usize].total_cmp(&self.free_us[b as usize]));
            let more: UnitMask = by_time.into_iter().take(missing as usize).collect();
            free = free.without(more);
            *units = units.union(more);
        }
        given.retain(|(_, units)| !units.is_empty());
        given
    }

    fn begin_us(&self, model: usize, units: UnitMask) -> f64 {
        units.iter().map(|unit| self.free_us[unit as usize]).fold(self.ready_us[model], f64::max)
    }

    /// A segment on the same units as its model's last, which nobody had meanwhile, makes that longer.
    fn add(&mut self, segment: Segment) {
        let last = self.segments.iter().rposition(|last| {
            last.model == segment.model || !last.units.is_disjoint(segment.units)
        });
        match last.map(|last| &mut self.segments[last]) {
            Some(last) if last.model == segment.model && last.units == segment.units => {
                last.steps.end = segment.steps.end;
            }
            _ => self.segments.push(segment),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::schedule::tests::mix;
    use super::*;

    #[test]
    fn units_of_a_model_that_has_ended_go_to_the_others() {
        let mix = mix(&[(&[10.0; 4], 8), (&[10.0; 16], 8)], 8);
        let halves = Stages::of(vec![Stage { units: vec![4, 4], until: 1.0 }], &mix);
        let schedule = halves.schedule(&mix);
        schedule.check(&mix).unwrap();
        let units: Vec<(usize, u32)> =
            schedule.segments.iter().map(|segment| (segment.model, segment.units.len())).collect();
        assert_eq!(units, [(0, 4), (1, 4), (1, 8)]);
        // 40 us of work on four units, then the other 120 on eight.
        assert_eq!(schedule.timeline(&mix).makespan.us(), 10.0 + 15.0);
    }

    #[test]
    fn in_turns_is_one_after_another() {
        let mix = mix(&[(&[10.0; 4], 2), (&[10.0; 16], 2)], 8);
        let schedule = Stages::in_turns(&mix).schedule(&mix);
        assert_eq!(schedule.segments.len(), 2);
        assert_eq!(schedule.timeline(&mix).makespan.us(), 20.0 + 80.0);
        assert_eq!(Stages::even(&mix).schedule(&mix).timeline(&mix).makespan.us(), 80.0);
    }

    fn stages() -> impl Strategy<Value = Stages> {
        let stage = (prop::collection::vec(0u32..12, 3), 0.0f64..1.0);
        let stage = stage.prop_map(|(units, until)| Stage { units, until });
        let fillers = prop::collection::vec(any::<bool>(), 3);
        (prop::collection::vec(stage, 0..6), fillers).prop_map(|(stages, fillers)| Stages {
            stages,
            fillers,
            forms: vec![Form::WHOLE; 3],
        })
    }

    proptest! {
        #[test]
        fn all_steps_run_once_whatever_the_stages_are(
            stages in stages(), first in prop::collection::vec(1.0f64..50.0, 1..9), useful in 1u32..9,
            last_unit in 1u32..4,
        ) {
            let mix = mix(&[(&first, useful), (&[5.0; 7], 3), (&[30.0], 8)], 8);
            let mix = mix.with_last_unit_of(last_unit);
            let schedule = stages.schedule(&mix);
            prop_assert_eq!(schedule.check(&mix), Ok(()));
            // No units are used by two at once.
            let timeline = schedule.timeline(&mix);
            for (a, first) in schedule.segments.iter().zip(&timeline.segments) {
                for (b, second) in schedule.segments.iter().zip(&timeline.segments) {
                    let is_apart = first.1 <= second.0 || second.1 <= first.0;
                    let is_shared = a.is_filler || b.is_filler;
                    prop_assert!(a == b || is_apart || is_shared || a.units.is_disjoint(b.units));
                }
            }
            prop_assert!(timeline.idle_unit_us > -1e-3);
            prop_assert!(timeline.makespan.us() > mix.bound().us() - 1e-3);
        }
    }
}
