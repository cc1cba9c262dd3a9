//! Mixes of what is served: recognised by the rounds in which requests come, regulated in the background, used where the layout
//! that wins has one partition of all units, and dropped when something else comes.

use crate::identity::{MixId, ModelId};
use crate::lane::LaneMix;
use crate::layout::{RoundLoad, largest_batch};
use crate::policy::Action;
use crate::served::ServedDevice;
use crate::serving::{ReadyMix, Serving, ServingPartition};
use crate::time::{Span, Time};
use crate::unit_mask::UnitMask;

use super::rounds::{Recurring, Rounds};

/// Requests of a round may come so many times as far apart as they did, and in any case as far as this.
const LAG_FACTOR: f64 = 1.5;
const LEAST_LAG: Span = Span::from_nanos(20_000);

/// How long what is lost is watched after rounds were recognised and a layout for them was searched for, before a mix is asked for.
const SETTLING: Span = Span::from_nanos(1_000_000_000);

/// Where less than this share of the launches of a mix's models are the mix, of late, it is dropped; or rests, where its rounds
/// recur all the same: they come faster than it runs, or too tight.
const LEAST_USE: f64 = 0.5;

/// How much of the distance to the latest share is gone with each launch.
const USE_WEIGHT: f64 = 0.05;

/// How long it rests, and how long one that was regulated to no avail does before more is spent on it.
const REST: Span = Span::from_nanos(10_000_000_000);

/// Undisturbed rounds are so many times as long as the quickest few.
const QUICK_FACTOR: f64 = 2.0;

/// How long a mix that is ready and not used is kept after the last round.
const KEPT: Span = Span::from_nanos(5_000_000_000);

/// Mixes that were regulated to no avail and are not asked for again.
const MAX_VAIN: usize = 32;

/// What came of the rounds so far.
#[derive(Default)]
pub(super) struct Mixing {
    rounds: Rounds,
    /// The round that was recognised last, and when.
    recognised: Option<(Vec<(ModelId, u32)>, Time)>,
    known: Option<Known>,
    next_mix: u32,
    in_vain: Vec<Vain>,
}

/// A mix that was regulated to no avail.
struct Vain {
    models: Vec<(ModelId, u32)>,
    /// Others might be held up for it, so that nothing else is to be tried.
    might_hold_up: bool,
    at: Time,
}

/// What a look at the rounds is made with.
pub(super) struct Look<'a> {
    pub(super) device: &'a ServedDevice,
    pub(super) present: &'a [ServingPartition],
    /// Whether requests are lost.
    pub(super) is_pressed: bool,
    pub(super) now: Time,
}

/// A mix that was asked for.
struct Known {
    mix: MixId,
    /// As it came last.
    load: RoundLoad,
    may_hold_up: bool,
    seen_at: Time,
    /// Of the launches of its models, the share that is the mix, of late; `None` where it is not used.
    used: Option<f64>,
    /// Until when it is not to be used.
    rests_until: Option<Time>,
}

impl Known {
    /// How long the mix takes, where it is ready and may be used.
    fn usable(&self) -> Option<Span> {
        self.load.mixed.filter(|_| self.rests_until.is_none())
    }

    /// Takes in how launches went of late; false where too few of them were the mix, though it is used.
    fn is_of_use(&mut self, serving: &mut Serving) -> bool {
        let Some(share) = &mut self.used else { return true };
        let used = serving.take_mix_use();
        for (count, target) in [(used.together, 1.0), (used.apart, 0.0)] {
            let left = (1.0 - USE_WEIGHT).powf(f64::from(count));
            *share = target + (*share - target) * left;
        }
        *share >= LEAST_USE
    }
}

impl Mixing {
    pub(super) fn arrive(&mut self, model: ModelId, now: Time) {
        self.rounds.arrive(model, now);
    }

    fn is_used(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.used.is_some())
    }

    /// How requests come, where they come in rounds.
    pub(super) fn load(&self) -> Option<RoundLoad> {
        let known = self.known.as_ref();
        let recurring = self.rounds.recurring().map(|it| of_round(it, self.is_used()));
        // What comes once between rounds does not end them.
        let load = recurring.or_else(|| known.map(|known| known.load.clone()))?;
        let ready = known.filter(|known| known.load.models == load.models);
        Some(RoundLoad { mixed: ready.and_then(Known::usable), ..load })
    }

    /// Asks for a mix to be regulated that recurs, lets one rest that is of no use at present, and drops one that recurs no more;
    /// says whether layouts are to be looked at anew for it.
    pub(super) fn look(
        &mut self,
        look: &Look<'_>,
        serving: &mut Serving,
        actions: &mut Vec<Action>,
    ) -> bool {
        let &Look { device, present, is_pressed, now } = look;
        let recurring = self.rounds.recurring();
        let Some(known) = &mut self.known else {
            let wanted = recurring.filter(|it| self.is_wanted(it, look));
            let Some(load) = wanted.map(|it| of_round(it, false)) else { return false };
            let recognised = self.recognised.as_ref().filter(|(of, _)| *of == load.models);
            let Some(&(_, recognised_at)) = recognised else {
                self.recognised = Some((load.models, now));
                // Rounds want other layouts than independent requests, with a mix or without.
                return true;
            };
            if now.since(recognised_at) < SETTLING {
                return false;
            }
            let mix = MixId(self.next_mix);
            self.next_mix += 1;
            let (units, models) = (UnitMask::range(0, device.units), load.models.clone());
            let may_hold_up = is_pressed;
            actions.push(Action::Regulate { mix, units, models, may_hold_up });
            let (used, rests_until) = (None, None);
            self.known = Some(Known { mix, load, may_hold_up, seen_at: now, used, rests_until });
            return false;
        };
        let again = recurring.filter(|it| it.models == known.load.models);
        let recurs = again.is_some();
        if let Some(again) = again {
            known.seen_at = now;
            let is_used = known.used.is_some();
            known.load = RoundLoad { mixed: known.load.mixed, ..of_round(again, is_used) };
        }
        // All came in every round of late.
        serving.adjust_mix(allowed(known.load.lag), recurs);
        let is_of_use = known.is_of_use(serving);
        let has_ended = match known.used {
            Some(_) => !is_of_use && !recurs,
            None => known.load.mixed.is_some() && now.since(known.seen_at) > KEPT,
        };
        if has_ended {
            actions.push(Action::Forget(known.mix));
            self.known = None;
            serving.set_mix(None);
            return true;
        }
        if !is_of_use {
            (known.used, known.rests_until) = (None, Some(now + REST));
            serving.set_mix(None);
            return true;
        }
        let is_rested = known.rests_until.take_if(|until| now >= *until).is_some();
        if is_rested {
            self.begin(present, serving);
        }
        is_rested
    }

    /// Whether all units serve all models of a round in such batches, and each by itself, and it was not regulated before, but
    /// perhaps when nobody was to be held up.
    fn is_wanted(&self, round: &Recurring, look: &Look<'_>) -> bool {
        let device = look.device;
        let can_mix = |&(model, count): &(ModelId, u32)| {
            let served = &device.models[model.index()];
            let largest = largest_batch(served, device.units);
            served.slo.is_some()
                && served.group.is_none()
                && largest.is_some_and(|largest| count <= largest)
        };
        let is_vain = |vain: &Vain| {
            // What is lost while it is regulated says nothing of what is lost without it.
            let is_final = vain.might_hold_up || look.now.since(vain.at) < REST;
            vain.models == round.models && (is_final || !look.is_pressed)
        };
        round.models.iter().all(can_mix) && !self.in_vain.iter().any(is_vain)
    }

    /// A mix was regulated; says whether layouts are to be looked at anew for it.
    pub(super) fn regulated(
        &mut self,
        mix: MixId,
        latency: Option<Span>,
        present: &[ServingPartition],
        now: Time,
        serving: &mut Serving,
    ) -> bool {
        let Some(known) = self.known.as_mut().filter(|known| known.mix == mix) else {
            return false;
        };
        if latency.is_none() {
            let vain = self.known.take().map(|known| Vain {
                models: known.load.models,
                might_hold_up: known.may_hold_up,
                at: now,
            });
            self.in_vain.retain(|other| Some(&other.models) != vain.as_ref().map(|it| &it.models));
            let room = MAX_VAIN.saturating_sub(self.in_vain.len());
            self.in_vain.extend(vain.into_iter().take(room));
            return false;
        }
        known.load.mixed = latency;
        self.begin(present, serving);
        true
    }

    /// Uses the mix, where it is ready and a partition has all its units.
    pub(super) fn begin(&mut self, present: &[ServingPartition], serving: &mut Serving) {
        let Some(known) = &mut self.known else { return };
        let ready = match (present, known.usable()) {
            ([whole], Some(latency)) => {
                let RoundLoad { models, lag, .. } = known.load.clone();
                let (mix, lag) = (known.mix, allowed(lag));
                let mix = LaneMix { mix, models, lag, can_be_counted_on: true };
                Some(ReadyMix { mix, partition: whole.id, latency })
            }
            _ => None,
        };
        known.used = ready.is_some().then_some(1.0);
        serving.set_mix(ready);
    }
}

/// How far apart requests of a round may come that came so far apart.
fn allowed(lag: Span) -> Span {
    (lag * LAG_FACTOR).max(LEAST_LAG)
}

/// Rounds as they come, or while no mix is used as they would come if nothing ran before all of a round is there.
fn of_round(round: Recurring, is_used: bool) -> RoundLoad {
    let Recurring { models, lag, quick_lag, periods } = round;
    let undisturbed = lag.min(quick_lag * QUICK_FACTOR);
    RoundLoad { models, lag: if is_used { lag } else { undisturbed }, periods, mixed: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::random_devices::device_with;

    fn at(ms: f64) -> Time {
        Time::START + Span::from_us(ms * 1e3)
    }

    /// Rounds of models, one each millisecond from one on.
    fn come(mixing: &mut Mixing, models: &[u32], from: u32, to: u32) {
        for number in from..to {
            models.iter().for_each(|&model| mixing.arrive(ModelId(model), at(f64::from(number))));
        }
    }

    fn look(mixing: &mut Mixing, device: &ServedDevice, ms: f64) -> Vec<Action> {
        look_pressed(mixing, device, ms, false)
    }

    fn look_pressed(
        mixing: &mut Mixing,
        device: &ServedDevice,
        ms: f64,
        is_pressed: bool,
    ) -> Vec<Action> {
        let (mut serving, mut actions) = (Serving::new(device.clone()), Vec::new());
        let look = Look { device, present: &[], is_pressed, now: at(ms) };
        mixing.look(&look, &mut serving, &mut actions);
        actions
    }

    fn asked(actions: &[Action]) -> Vec<(u32, Vec<ModelId>)> {
        let regulated = actions.iter().filter_map(|action| match action {
            Action::Regulate { mix, models, .. } => {
                Some((mix.0, models.iter().map(|(model, _)| *model).collect()))
            }
            _ => None,
        });
        regulated.collect()
    }

    #[test]
    fn what_gains_nothing_is_regulated_once() {
        let device = device_with(&[(100.0, 50.0), (100.0, 50.0), (100.0, 50.0)], 4);
        let mut serving = Serving::new(device.clone());
        let mut mixing = Mixing::default();
        come(&mut mixing, &[0, 1], 0, 20);
        assert_eq!(look(&mut mixing, &device, 20.0), [], "a layout for rounds comes first");
        let first = look(&mut mixing, &device, 1020.0);
        assert_eq!(asked(&first), [(0, vec![ModelId(0), ModelId(1)])]);
        assert_eq!(look(&mut mixing, &device, 1021.0), [], "it is on its way");
        assert!(!mixing.regulated(MixId(0), None, &[], at(1050.0), &mut serving));
        assert_eq!(look(&mut mixing, &device, 2100.0), []);
        // Where requests are lost it may take more, once.
        assert_eq!(look_pressed(&mut mixing, &device, 3100.0, true), [], "it may be lost for it");
        let pressed = look_pressed(&mut mixing, &device, 11_100.0, true);
        assert!(matches!(pressed[..], [Action::Regulate { may_hold_up: true, .. }]), "{pressed:?}");
        mixing.regulated(MixId(1), None, &[], at(11_200.0), &mut serving);
        assert_eq!(look_pressed(&mut mixing, &device, 30_000.0, true), []);
        // Another one is another matter.
        come(&mut mixing, &[1, 2], 30_000, 30_020);
        look(&mut mixing, &device, 30_020.0);
        let second = look(&mut mixing, &device, 31_020.0);
        assert_eq!(asked(&second), [(2, vec![ModelId(1), ModelId(2)])]);
        assert!(mixing.regulated(
            MixId(2),
            Some(Span::from_us(900.0)),
            &[],
            at(31_100.0),
            &mut serving
        ));
        assert_eq!(mixing.load().unwrap().mixed, Some(Span::from_us(900.0)));
        // That nothing comes says nothing; something else does.
        assert_eq!(look(&mut mixing, &device, 32_000.0), []);
        come(&mut mixing, &[2, 2], 32_000, 32_020);
        let ended = look(&mut mixing, &device, 32_000.0 + KEPT.us() / 1e3 + 1.0);
        assert_eq!(ended, [Action::Forget(MixId(2))]);
        assert_eq!(mixing.load(), None);
    }

    #[test]
    fn models_without_an_objective_or_in_a_group_are_in_no_mix() {
        for change in [
            |device: &mut ServedDevice| device.models[1].slo = None,
            |device: &mut ServedDevice| {
                device.models[1].group = Some(crate::identity::GroupId(1));
            },
        ] {
            let mut device = device_with(&[(100.0, 50.0), (100.0, 50.0)], 4);
            change(&mut device);
            let mut mixing = Mixing::default();
            come(&mut mixing, &[0, 1], 0, 20);
            assert_eq!(look(&mut mixing, &device, 20.0), []);
        }
    }
}
