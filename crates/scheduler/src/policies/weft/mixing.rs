//! Mixes of what is served: recognised by the rounds in which requests come, regulated in the background, used where the layout
//! that wins has one partition of all units, and dropped when something else comes.

use crate::identity::{MixId, ModelId};
use crate::lane::LaneMix;
use crate::layout::{RoundLoad, largest_batch};
use crate::policy::{Action, NoMix};
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

/// Where less than this share of the requests of a mix's models run as the mix, of late, it is dropped; or rests, where its rounds
/// recur all the same: they come faster than it runs, or too tight.
const LEAST_USE: f64 = 0.5;

/// How much of the distance to the latest share is gone with each request.
const USE_WEIGHT: f64 = 0.02;

/// How long it rests, and how long one that was regulated to no avail does before more is spent on it.
const REST: Span = Span::from_nanos(10_000_000_000);

/// How long one rests that there was no room for: there may be some once a model was unloaded, or another mix let go of.
const WITHOUT_ROOM: Span = Span::from_nanos(60_000_000_000);

/// Undisturbed rounds are so many times as long as the quickest few.
const QUICK_FACTOR: f64 = 2.0;

/// How long what recurred is known after the last round, and a mix is kept that is ready.
const KEPT: Span = Span::from_nanos(5_000_000_000);

/// So many mixes that were regulated to no avail are remembered, the latest.
const MAX_VAIN: usize = 32;

/// What came of the rounds so far.
#[derive(Default)]
pub(super) struct Mixing {
    rounds: Rounds,
    recognised: Option<Recognised>,
    known: Option<Known>,
    next_mix: u32,
    /// The oldest first.
    in_vain: Vec<Vain>,
    /// The models of a mix that was in use until a larger one took its place, which is not ready yet.
    displaced: Option<Vec<(ModelId, u32)>>,
}

/// The round that was recognised last.
struct Recognised {
    models: Vec<(ModelId, u32)>,
    /// When that was, and when it was last seen to recur.
    at: Time,
    seen_at: Time,
}

/// A mix that was regulated to no avail.
struct Vain {
    models: Vec<(ModelId, u32)>,
    why: NoMix,
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
    /// When its rounds were last seen to recur, or it was last launched.
    seen_at: Time,
    /// Of the requests of its models, the share that runs as the mix, of late; `None` where it is not used.
    used: Option<f64>,
    /// What was learned of its share of the time: a factor, which is doubted after each so long without use.
    correction: f64,
    idle_since: Time,
    /// Until when it is not to be used.
    rests_until: Option<Time>,
}

impl Known {
    /// What the mix took of its batches' time when it was regulated, where it is ready and may be used.
    fn usable(&self) -> Option<f64> {
        self.load.mixed.filter(|_| self.rests_until.is_none())
    }

    /// Takes in how requests ran of late; false where too few of them were the mix, though it is used.
    fn is_of_use(&mut self, serving: &mut Serving, now: Time) -> bool {
        let Some(share) = &mut self.used else { return true };
        let used = serving.take_mix_use();
        if used.together > 0 {
            self.seen_at = now;
        }
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
    pub(super) fn load(&self, now: Time) -> Option<RoundLoad> {
        let known = self.known.as_ref();
        let recurring = self.again(self.expected()?, now);
        let recurring = recurring.map(|it| of_round(it, self.is_used()));
        // What comes once between rounds does not end them.
        let load = recurring.or_else(|| known.map(|known| known.load.clone()))?;
        let mixed = known.and_then(|known| Some(known.usable()? * known.correction));
        Some(RoundLoad { mixed, ..load })
    }

    /// The round that is expected: that of the mix, or the one that was recognised last.
    fn expected(&self) -> Option<&[(ModelId, u32)]> {
        let known = self.known.as_ref().map(|known| &known.load.models);
        let recognised = self.recognised.as_ref().map(|recognised| &recognised.models);
        known.or(recognised).map(Vec::as_slice)
    }

    /// A round, where it recurs.
    fn again(&self, round: &[(ModelId, u32)], now: Time) -> Option<Recurring> {
        let models: Vec<ModelId> = round.iter().map(|(model, _)| *model).collect();
        self.rounds.recurring(&models, now).filter(|it| it.models == round)
    }

    /// A round that recurs and is not the expected one: one that has more than that, or another in its place where no mix is known.
    fn search(&mut self, again: Option<&Recurring>, look: &Look<'_>) -> Option<Recurring> {
        // What comes once between rounds does not make them others.
        let is_expected = |it: &Recognised| look.now.since(it.seen_at) < SETTLING;
        let is_expected = self.known.is_some() || self.recognised.as_ref().is_some_and(is_expected);
        if again.is_none() && is_expected {
            return None;
        }
        let again = again.map_or(&[][..], |it| &it.models);
        let models: Vec<ModelId> = again.iter().map(|(model, _)| *model).collect();
        self.rounds.search(&models, look.now, |round| may_gain(round, look.device))
    }

    /// Asks for a mix to be regulated that recurs, lets one rest that is of no use at present, and drops one that recurs no more;
    /// says whether layouts are to be looked at anew for it.
    pub(super) fn look(
        &mut self,
        look: &Look<'_>,
        serving: &mut Serving,
        actions: &mut Vec<Action>,
    ) -> bool {
        let again = self.expected().and_then(|expected| self.again(expected, look.now));
        let other = self.search(again.as_ref(), look);
        // One that was in vain is no reason to leave what is expected.
        let other = other.filter(|other| again.is_none() || self.is_wanted(other, look));
        if self.known.is_some() {
            self.review(again, other, look, serving, actions)
        } else {
            other.or(again).is_some_and(|round| self.ask(round, look, actions))
        }
    }

    /// Asks for the mix of a round, once it has recurred for a while; says whether it is recognised only now: rounds want other
    /// layouts than independent requests, with a mix or without.
    fn ask(&mut self, round: Recurring, look: &Look<'_>, actions: &mut Vec<Action>) -> bool {
        let is_new = self.recognise(&round, look.now);
        if self.has_settled(look.now) && self.is_wanted(&round, look) {
            let mix = MixId(self.next_mix);
            self.next_mix += 1;
            let units = UnitMask::range(0, look.device.units);
            let (models, may_hold_up) = (round.models.clone(), look.is_pressed);
            actions.push(Action::Regulate { mix, units, models, may_hold_up });
            self.known = Some(Known {
                mix,
                load: of_round(round, false),
                may_hold_up,
                seen_at: look.now,
                used: None,
                correction: 1.0,
                idle_since: look.now,
                rests_until: None,
            });
        }
        is_new
    }

    /// A round recurs; says whether that was not known of late.
    fn recognise(&mut self, round: &Recurring, now: Time) -> bool {
        let is_it = |it: &Recognised| it.models == round.models && now.since(it.seen_at) <= KEPT;
        let is_new = !self.recognised.as_ref().is_some_and(is_it);
        if is_new {
            self.displaced = None;
        }
        match &mut self.recognised {
            Some(recognised) if !is_new => recognised.seen_at = now,
            _ => {
                let models = round.models.clone();
                self.recognised = Some(Recognised { models, at: now, seen_at: now });
            }
        }
        is_new
    }

    fn has_settled(&self, now: Time) -> bool {
        self.recognised.as_ref().is_some_and(|it| now.since(it.at) >= SETTLING)
    }

    /// Looks at the mix that is known, whose rounds may recur, perhaps as a part of others.
    fn review(
        &mut self,
        again: Option<Recurring>,
        larger: Option<Recurring>,
        look: &Look<'_>,
        serving: &mut Serving,
        actions: &mut Vec<Action>,
    ) -> bool {
        let now = look.now;
        let has_grown =
            larger.is_some_and(|larger| !self.recognise(&larger, now) && self.has_settled(now));
        let Some(known) = &mut self.known else { return false };
        let recurs = again.is_some();
        if let Some(again) = again {
            known.seen_at = now;
            let is_used = known.used.is_some();
            known.load = RoundLoad { mixed: known.load.mixed, ..of_round(again, is_used) };
        }
        // All came in every round of late.
        serving.adjust_mix(allowed(known.load.lag), recurs);
        let is_of_use = known.is_of_use(serving, now);
        if known.used.is_some() {
            known.idle_since = now;
        } else if now.since(known.idle_since) >= REST {
            serving.doubt_resting_mix();
            known.idle_since = now;
        }
        known.correction = serving.mix_correction(known.mix);
        let is_over = now.since(known.seen_at) > KEPT;
        if is_over || has_grown || (!is_of_use && !recurs) {
            actions.push(Action::Forget(known.mix));
            let gained = self.known.take().filter(|known| has_grown && known.load.mixed.is_some());
            self.displaced = gained.map(|known| known.load.models);
            self.recognised.take_if(|_| !has_grown);
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
            self.begin(look.present, serving);
        }
        is_rested
    }

    /// Whether a round was not regulated before, but perhaps when nobody was to be held up.
    fn is_wanted(&self, round: &Recurring, look: &Look<'_>) -> bool {
        let is_vain = |vain: &Vain| {
            let since = look.now.since(vain.at);
            match vain.why {
                NoMix::NoRoom => since < WITHOUT_ROOM,
                // What is lost while it is regulated says nothing of what is lost without it.
                NoMix::GainsNothing => vain.might_hold_up || since < REST || !look.is_pressed,
            }
        };
        !self.in_vain.iter().any(|vain| vain.models == round.models && is_vain(vain))
    }

    /// A mix was regulated, or is let go of; says whether layouts are to be looked at anew for it.
    pub(super) fn regulated(
        &mut self,
        mix: MixId,
        share: Result<f64, NoMix>,
        present: &[ServingPartition],
        now: Time,
        serving: &mut Serving,
    ) -> bool {
        let Some(mut known) = self.known.take_if(|known| known.mix == mix) else { return false };
        let displaced = self.displaced.take();
        match share {
            Ok(share) => {
                known.load.mixed = Some(share);
                self.known = Some(known);
                self.begin(present, serving);
                true
            }
            Err(why) => {
                let was_ready = known.load.mixed.is_some();
                let (models, might_hold_up) = (known.load.models, known.may_hold_up);
                self.in_vain.retain(|other| other.models != models);
                if self.in_vain.len() == MAX_VAIN {
                    self.in_vain.remove(0);
                }
                self.in_vain.push(Vain { models, why, might_hold_up, at: now });
                // What was of use before is expected again.
                if let Some(models) = displaced {
                    self.recognised = Some(Recognised { models, at: now, seen_at: now });
                }
                serving.set_mix(None);
                was_ready
            }
        }
    }

    /// Uses the mix, where it is ready and a partition has all its units.
    pub(super) fn begin(&mut self, present: &[ServingPartition], serving: &mut Serving) {
        let Some(known) = &mut self.known else { return };
        let ready = match (present, known.usable()) {
            ([whole], Some(share)) => {
                let RoundLoad { models, lag, .. } = known.load.clone();
                let (mix, lag) = (known.mix, allowed(lag));
                let mix = LaneMix { mix, models, lag, can_be_counted_on: true };
                Some(ReadyMix { mix, partition: whole.id, share })
            }
            _ => None,
        };
        known.used = ready.is_some().then_some(1.0);
        serving.set_mix(ready);
    }
}

/// Whether all units serve all models of a round in such batches, and each by itself, and its requests come no farther apart than
/// a mix of them may gain: it takes as long as the longest of them, at least. Who asks for one after the answer to another comes
/// farther apart than that.
fn may_gain(round: &Recurring, device: &ServedDevice) -> bool {
    let alone = |&(model, count): &(ModelId, u32)| {
        let served = &device.models[model.index()];
        let largest = largest_batch(served, device.units)?;
        let can_mix = served.slo.is_some() && served.group.is_none() && count <= largest;
        can_mix.then(|| served.profile.latency(count, device.units))
    };
    let Some(alone) = round.models.iter().map(alone).collect::<Option<Vec<Span>>>() else {
        return false;
    };
    let longest = alone.iter().copied().max().unwrap_or(Span::ZERO);
    let all = alone.into_iter().fold(Span::ZERO, |all, one| all + one);
    undisturbed(round) * LAG_FACTOR < all.saturating_sub(longest)
}

/// How far apart requests of a round come where nothing runs before all of it is there.
fn undisturbed(round: &Recurring) -> Span {
    round.lag.min(round.quick_lag * QUICK_FACTOR)
}

/// How far apart requests of a round may come that came so far apart.
fn allowed(lag: Span) -> Span {
    (lag * LAG_FACTOR).max(LEAST_LAG)
}

/// Rounds as they come, or while no mix is used as they would come if nothing ran before all of a round is there.
fn of_round(round: Recurring, is_used: bool) -> RoundLoad {
    let lag = if is_used { round.lag } else { undisturbed(&round) };
    RoundLoad { models: round.models, lag, periods: round.periods, mixed: None }
}
