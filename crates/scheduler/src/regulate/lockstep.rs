//! Models of a mix in lockstep: which steps of different models share a launch on all units.

use super::{Form, Mix};
use crate::Span;

/// Launches that are shared are predicted to be shorter than those apart by at least this share: what they have in common, such as the
/// room of a block, costs something that predictions do not know.
const LEAST_GAIN: f64 = 0.1;

/// A step of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockedStep {
    /// Which of the mix's models.
    pub model: usize,
    /// Which of its steps.
    pub step: usize,
    /// Its share of the units, which its kernels are those for: all of them where it runs by itself.
    pub units: u32,
}

/// All steps of a mix, one set after another. Steps of one set are of different models, share a launch, and begin in their order: the
/// longest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Lockstep {
    /// The sets in order.
    pub sets: Vec<Vec<LockedStep>>,
    /// How long it should take.
    pub makespan: Span,
}

/// Steps that run together.
#[derive(Clone, Debug)]
struct Set {
    steps: Vec<LockedStep>,
    us: f64,
}

impl Lockstep {
    /// The order of all steps, each after the one before it of its model, that should take least: models are aligned one after
    /// another with those before. `can_share` says whether steps can share a launch on the device.
    pub fn new(mix: &Mix, can_share: &dyn Fn(&[LockedStep]) -> bool) -> Self {
        let alone = |model: usize| -> Vec<Set> {
            let steps = 0..mix.models()[model].step_count();
            steps.map(|step| Set::of(vec![(model, step)], mix)).collect()
        };
        let mut sets = Vec::new();
        for model in 0..mix.models().len() {
            sets = aligned(&sets, &alone(model), mix, can_share);
        }
        let makespan = Span::from_us(sets.iter().map(|set| set.us).sum());
        Self { sets: sets.into_iter().map(|set| set.steps).collect(), makespan }
    }

    /// How many launches are of several models.
    pub fn shared_count(&self) -> usize {
        self.sets.iter().filter(|set| set.len() > 1).count()
    }
}

impl Set {
    /// Steps that run together take as long as the longest of them on all units, and at least what keeps all units busy.
    fn of(steps: Vec<(usize, usize)>, mix: &Mix) -> Self {
        let units = f64::from(mix.unit_count());
        let times = |&(model, step): &(usize, usize)| {
            let of = &mix.models()[model];
            let us = of.between_us(Form::WHOLE, mix.unit_count(), step, step + 1);
            (us, of.least_unit_us(Form::WHOLE, step, step + 1))
        };
        let mut timed: Vec<((usize, usize), (f64, f64))> =
            steps.iter().map(|step| (*step, times(step))).collect();
        // Those that are as long stay in order.
        timed.sort_by(|(_, (one, _)), (_, (other, _))| other.total_cmp(one));
        let longest = timed.first().map_or(0.0, |(_, (us, _))| *us);
        let busy: f64 = timed.iter().map(|(_, (_, unit_us))| unit_us).sum();
        let is_alone = timed.len() == 1;
        let locked = |((model, step), (_, unit_us)): ((usize, usize), (f64, f64))| {
            let share = if is_alone || busy <= 0.0 { 1.0 } else { unit_us / busy };
            let units = ((units * share).round() as u32).clamp(1, mix.unit_count());
            LockedStep { model, step, units }
        };
        Self { steps: timed.into_iter().map(locked).collect(), us: longest.max(busy / units) }
    }

    fn with(&self, other: &Self, mix: &Mix) -> Self {
        let steps = self.steps.iter().chain(&other.steps);
        Self::of(steps.map(|locked| (locked.model, locked.step)).collect(), mix)
    }
}

/// Two sequences as one, each in its order, that takes least: sets of both become one where that gains.
fn aligned(
    one: &[Set],
    other: &[Set],
    mix: &Mix,
    can_share: &dyn Fn(&[LockedStep]) -> bool,
) -> Vec<Set> {
    /// How the best sequence of so many of both ends.
    #[derive(Clone)]
    enum Last {
        One,
        Other,
        Both(Set),
    }
    let width = other.len() + 1;
    let mut best: Vec<(f64, Last)> = Vec::with_capacity((one.len() + 1) * width);
    for row in 0..=one.len() {
        for column in 0..=other.len() {
            let at = |row: usize, column: usize| best[row * width + column].0;
            let mut found = (0.0, Last::One);
            if column > 0 {
                found = (at(row, column - 1) + other[column - 1].us, Last::Other);
            }
            if row > 0 {
                let us = at(row - 1, column) + one[row - 1].us;
                if column == 0 || us < found.0 {
                    found = (us, Last::One);
                }
            }
            if row > 0 && column > 0 {
                let (left, right) = (&one[row - 1], &other[column - 1]);
                let both = left.with(right, mix);
                let us = at(row - 1, column - 1) + both.us;
                let gains = both.us <= (left.us + right.us) * (1.0 - LEAST_GAIN);
                if gains && us < found.0 && can_share(&both.steps) {
                    found = (us, Last::Both(both));
                }
            }
            best.push(found);
        }
    }
    let (mut row, mut column) = (one.len(), other.len());
    let mut sets = Vec::with_capacity(row + column);
    while row + column > 0 {
        match &best[row * width + column].1 {
            Last::One => {
                row -= 1;
                sets.push(one[row].clone());
            }
            Last::Other => {
                column -= 1;
                sets.push(other[column].clone());
            }
            Last::Both(both) => {
                (row, column) = (row - 1, column - 1);
                sets.push(both.clone());
            }
        }
    }
    sets.reverse();
    sets
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::schedule::tests::mix;
    use super::*;

    fn all(_: &[LockedStep]) -> bool {
        true
    }

    fn sets(lockstep: &Lockstep) -> Vec<Vec<(usize, usize)>> {
        let step = |locked: &LockedStep| (locked.model, locked.step);
        lockstep.sets.iter().map(|set| set.iter().map(step).collect()).collect()
    }

    #[test]
    fn steps_that_leave_units_idle_share_launches_the_longest_first() {
        // On eight units, steps of 20 and 40 us gain from two: 10 and 20 us each.
        let mix = mix(&[(&[20.0, 20.0], 2), (&[40.0, 40.0], 2)], 8);
        let lockstep = Lockstep::new(&mix, &all);
        assert_eq!(sets(&lockstep), [[(1, 0), (0, 0)], [(1, 1), (0, 1)]]);
        assert_eq!((lockstep.makespan.us(), lockstep.shared_count()), (40.0, 2));
        // Twice the work is twice the share.
        let units: Vec<u32> = lockstep.sets[0].iter().map(|locked| locked.units).collect();
        assert_eq!(units, [5, 3]);
    }

    #[test]
    fn steps_that_fill_the_device_run_by_themselves() {
        let mix = mix(&[(&[80.0, 80.0], 8), (&[40.0], 8)], 8);
        let lockstep = Lockstep::new(&mix, &all);
        assert_eq!(lockstep.shared_count(), 0);
        assert!(lockstep.sets.iter().flatten().all(|locked| locked.units == 8));
        assert_eq!(lockstep.makespan.us(), 25.0);
    }

    #[test]
    fn long_steps_meet_long_ones() {
        // The only long step of the one runs with the long step of the other, wherever it is.
        let mix = mix(&[(&[100.0, 4.0, 4.0], 1), (&[4.0, 4.0, 100.0], 1)], 2);
        let lockstep = Lockstep::new(&mix, &all);
        assert!(sets(&lockstep).contains(&vec![(0, 0), (1, 2)]), "{lockstep:?}");
        assert_eq!(lockstep.makespan.us(), 4.0 + 4.0 + 100.0 + 4.0 + 4.0);
    }

    #[test]
    fn what_the_device_cannot_share_is_apart() {
        let mix = mix(&[(&[20.0, 20.0], 1), (&[20.0, 20.0], 1), (&[20.0], 1)], 8);
        let two = |steps: &[LockedStep]| steps.len() <= 2;
        assert!(Lockstep::new(&mix, &two).sets.iter().all(|set| set.len() <= 2));
        assert_eq!(Lockstep::new(&mix, &all).makespan.us(), 40.0);
        let none = Lockstep::new(&mix, &|_| false);
        assert_eq!((none.shared_count(), none.makespan.us()), (0, 100.0));
    }

    proptest! {
        #[test]
        fn every_step_runs_once_in_order_and_no_slower_than_one_after_another(
            models in prop::collection::vec(
                (prop::collection::vec(1.0f64..200.0, 1..12), 1u32..10), 1..5),
            units in 1u32..9,
            most in 1usize..5,
        ) {
            let given: Vec<(&[f64], u32)> =
                models.iter().map(|(steps, useful)| (steps.as_slice(), *useful)).collect();
            let mix = mix(&given, units);
            let lockstep = Lockstep::new(&mix, &|steps| steps.len() <= most);
            let mut done = vec![0; models.len()];
            for set in &lockstep.sets {
                prop_assert!(!set.is_empty() && set.len() <= most);
                for (place, locked) in set.iter().enumerate() {
                    prop_assert!(set[..place].iter().all(|other| other.model != locked.model));
                    prop_assert_eq!(done[locked.model], locked.step);
                    prop_assert!((1..=units).contains(&locked.units));
                    done[locked.model] += 1;
                }
            }
            for (model, done) in mix.models().iter().zip(done) {
                prop_assert_eq!(model.step_count(), done);
            }
            let in_turns: f64 =
                mix.models().iter().map(|model| model.time(Form::WHOLE, units).us()).sum();
            // Spans are whole nanoseconds.
            prop_assert!(lockstep.makespan.us() <= in_turns + 0.01);
            prop_assert!(lockstep.makespan.us() >= mix.bound().us() - 0.01);
        }
    }
}
