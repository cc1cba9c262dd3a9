//! Mixes: batches of different models that the device runs in one launch, by a schedule that was found for them.
//!
//! A mix is launched where its batches wait, all of them and no others of their models, where it takes less time than they take
//! one after another, and where nobody is less surely in time for it. While some of its requests have come and the others are
//! about to, the lane waits for them, no longer than what the mix gains, and only as long as all who wait can bear it.
//!
//! At the door, one who would be late in turn is taken in if it is in time as part of the mix, as are the others of it that
//! wait, and if all else that waits can wait for the mix: the last of its requests, and before it such as count on the others to
//! come, where these [can be counted on](LaneMix::can_be_counted_on). The mix then runs before all else. Whoever comes to such a
//! round and is none of it is promised to be answered after all of it.

use super::agenda::{Newcomer, Spot, Upcoming};
use super::launch::Batch;
use super::outlook::{Cost, Outlook};
use super::queues::Queue;
use super::{Lane, cost};
use crate::identity::{MixId, ModelId};
use crate::lane::BatchLatency;
use crate::request::Request;
use crate::time::{Span, Time};

/// A mix saves at least this share of the time of its batches, or is not worth that the first of them wait for the last.
const LEAST_GAIN: f64 = 0.02;

/// How long a mix takes: what is known of its batches is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixLatency {
    /// Of the time that its batches take one after another.
    pub share: f64,
    /// How far durations stray from that: their standard deviation, as a share. It is no less than that of the models.
    pub spread: f64,
}

/// A mix that is ready on the lane's partition.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneMix {
    /// Which.
    pub mix: MixId,
    /// The models, each once, and how many of its requests are in it.
    pub models: Vec<(ModelId, u32)>,
    /// How long the last of its requests may come after the first.
    pub lag: Span,
    /// Whether promises are made that hold only if the others come.
    pub can_be_counted_on: bool,
}

/// The mix of a lane, by the places of its models' queues.
#[derive(Clone, Debug)]
pub(super) struct Mixing {
    mix: MixId,
    parts: Vec<(usize, u32)>,
    lag: Span,
    can_be_counted_on: bool,
    /// When the newest of those came that were refused, or ran without the others of their round.
    apart_at: Option<Time>,
}

impl Lane {
    /// Runs a mix as one launch from now on where that is better, and no other; `None` runs every batch by itself. A mix of
    /// models that do not run here, or that share their batches with others, is never run.
    pub fn set_mix(&mut self, mix: Option<&LaneMix>) {
        let before = self.mixing.take();
        self.mixing = mix.and_then(|LaneMix { mix, models, lag, can_be_counted_on }| {
            let part = |&(model, count): &(ModelId, u32)| {
                let member = self.queues.member(model)?;
                let place = self.queues.place(member);
                let is_alone = place == self.queues.place_apart(member);
                is_alone.then_some((place, count))
            };
            let parts = models.iter().map(part).collect::<Option<Vec<_>>>()?;
            let can_be_counted_on = *can_be_counted_on;
            let apart_at = before.and_then(|before| before.apart_at);
            Some(Mixing { mix: *mix, parts, lag: *lag, can_be_counted_on, apart_at })
        });
    }

    /// The mix, where it may be launched next: not beside what is paused, which would go on while it runs.
    fn mixing_now(&self) -> Option<&Mixing> {
        self.mixing.as_ref().filter(|_| !self.has_paused())
    }

    /// Until when the lane waits for requests of a mix that are still to come, where it does.
    pub fn gathers_until(&self, now: Time, latency: &impl BatchLatency) -> Option<Time> {
        let mixing = self.mixing_now()?;
        let cost = self.cost_of_mix(mixing, latency)?;
        let (mut waiting, mut is_whole) = (Vec::with_capacity(mixing.parts.len()), true);
        for &(place, count) in &mixing.parts {
            let there = self.count_of_first(place);
            if there > count {
                return None;
            }
            is_whole &= there == count;
            waiting.extend(self.first_of(place));
        }
        let since = self.since(mixing)?;
        let until = since + mixing.lag;
        let end = Outlook::from(until.max(now), 0.0).then(cost);
        let is_counted_on = self.counts_on(mixing, Outlook::from(now, 0.0), end);
        if is_whole || !(waiting.contains(&0) || is_counted_on) {
            return None;
        }
        let gained = self.apart(mixing, latency).saturating_sub(cost.duration);
        let wait = until.since(now);
        let can_be_whole = until > now && self.may_still_come(mixing, now);
        let [now, then] = [now, until].map(|at| Outlook::from(at, 0.0));
        // Whether the others come or not, unless they are counted on already.
        let is_worth_it =
            is_counted_on || (gained > wait && self.agenda.can_wait(now, Cost::new(wait, 0.0)));
        let is_borne = self.agenda.tolerates_together(now, then, &waiting, cost);
        (can_be_whole && is_worth_it && is_borne).then_some(until)
    }

    /// When and where one who would be late in turn would be answered as part of a mix, if that is in time.
    pub(super) fn spot_in_mix(
        &self,
        newcomer: &Newcomer,
        now: Time,
        latency: &impl BatchLatency,
    ) -> Option<(Outlook, Spot)> {
        let mixing = self.mixing_now()?;
        let most = |place: usize| {
            let part = mixing.parts.iter().find(|(other, _)| *other == place);
            part.map_or(0, |(_, count)| *count)
        };
        let place = newcomer.place;
        let count = self.count_of_first(place) + 1;
        let is_in_it = |index: usize| self.is_in(mixing, index);
        let can_be_it = |(index, batch): (usize, &Upcoming)| {
            !is_in_it(index) || batch.count <= most(batch.place)
        };
        let is_promised = self.is_whole(mixing, Some(newcomer))
            || self.can_count_on(mixing, newcomer, now, latency);
        let can_mix = self.agenda.upcoming.iter().enumerate().all(can_be_it);
        if !can_mix || count > most(place) || !is_promised {
            return None;
        }
        let end = self.end_of_round(mixing, Some(newcomer), self.begin(now), now, latency)?;
        let mut after = end;
        let keeps = |(index, batch): (usize, &Upcoming)| {
            let outlook = match is_in_it(index) {
                true => end,
                false => {
                    after = after.then(batch.cost);
                    after
                }
            };
            outlook.keeps(batch.deadline, batch.certainty)
        };
        let is_kept = end.keeps(newcomer.deadline, newcomer.certainty)
            && self.agenda.upcoming.iter().enumerate().all(keeps);
        let cost = cost(latency, self.queues[place].model, count);
        let spot = match self.first_of(place) {
            Some(index) => Spot::Joined(index, cost),
            None => Spot::New(self.agenda.upcoming.len(), cost),
        };
        is_kept.then_some((end, spot))
    }

    /// Whether all of a mix waits, with one more request if there is one: so many in the first batch of each of its models.
    fn is_whole(&self, mixing: &Mixing, newcomer: Option<&Newcomer>) -> bool {
        mixing.parts.iter().all(|&(place, count)| {
            let is_of = newcomer.is_some_and(|newcomer| newcomer.place == place);
            self.count_of_first(place) + u32::from(is_of) == count
        })
    }

    /// Whether all who are still to come to a round may be counted on: none has come apart, and all will be in time.
    fn can_count_on(
        &self,
        mixing: &Mixing,
        newcomer: &Newcomer,
        now: Time,
        latency: &impl BatchLatency,
    ) -> bool {
        let end = self.end_of_round(mixing, Some(newcomer), self.begin(now), now, latency);
        let Some(end) = end else { return false };
        let will_be_in_time = |&(place, _): &(usize, u32)| {
            let Queue { model, slo, .. } = &self.queues[place];
            slo.is_none_or(|slo| end.keeps(now + slo, latency.certainty(*model)))
        };
        mixing.can_be_counted_on
            && self.may_still_come(mixing, now)
            && mixing.parts.iter().all(will_be_in_time)
    }

    /// Whether those of a round that do not wait yet may still come to it: none has come apart, none waits behind a batch that is not
    /// all of its part, and it is not too late.
    fn may_still_come(&self, mixing: &Mixing, now: Time) -> bool {
        let since = self.since(mixing).unwrap_or(now);
        let is_joined = |&(place, count): &(usize, u32)| {
            let first = self.count_of_first(place);
            first == count || first as usize == self.queues[place].requests.len()
        };
        !mixing.is_broken(since) && now <= since + mixing.lag && mixing.parts.iter().all(is_joined)
    }

    /// A request of a place was refused, or runs by itself: the others of its round count on it no more.
    pub(super) fn note_apart(&mut self, place: usize, arrived: Time) {
        let mixing = self.mixing.as_mut();
        if let Some(mixing) = mixing.filter(|it| it.parts.iter().any(|(part, _)| *part == place)) {
            mixing.apart_at = mixing.apart_at.max(Some(arrived));
        }
    }

    /// When the first of a round came, of those that wait.
    fn since(&self, mixing: &Mixing) -> Option<Time> {
        let first = |(place, _): &(usize, u32)| self.queues[*place].requests.front();
        mixing.parts.iter().filter_map(first).map(|request| request.arrived).min()
    }

    /// When a round ends that runs as a mix, as soon as it can from some instant on, with one more request if that is a part of it; `None` where there is no such mix.
    fn end_of_round(
        &self,
        mixing: &Mixing,
        newcomer: Option<&Newcomer>,
        begin: Outlook,
        now: Time,
        latency: &impl BatchLatency,
    ) -> Option<Outlook> {
        let complete_at = match self.is_whole(mixing, newcomer) {
            true => now,
            false => self.since(mixing).unwrap_or(now) + mixing.lag,
        };
        let wait = complete_at.since(begin.at);
        Some(begin.later(wait).then(self.cost_of_mix(mixing, latency)?))
    }

    /// Where one runs who is none of a round that was taken in as a mix: after all of it. `None` where there is no such round.
    pub(super) fn spot_after_mix(
        &self,
        newcomer: &Newcomer,
        now: Time,
        latency: &impl BatchLatency,
    ) -> Option<(Outlook, Spot)> {
        let mixing = self.mixing_now()?;
        let is_mix = self.is_whole(mixing, None) || self.may_still_come(mixing, now);
        let round = self.end_of_round(mixing, None, self.begin(now), now, latency)?;
        if !is_mix || !self.counts_on(mixing, self.begin(now), round) {
            return None;
        }
        let others = self.agenda.upcoming.iter().enumerate();
        let others = others.filter(|(index, _)| !self.is_in(mixing, *index));
        let before = others.fold(round, |outlook, (_, batch)| outlook.then(batch.cost));
        let alone = cost(latency, self.queues[newcomer.place].model, 1);
        Some((before.then(alone), Spot::New(self.agenda.upcoming.len(), alone)))
    }

    /// Whether someone who waits would be late in turn, and is in time as part of the mix, which ends then, or after it.
    fn counts_on(&self, mixing: &Mixing, mut in_turn: Outlook, end: Outlook) -> bool {
        let mut after = end;
        self.agenda.upcoming.iter().enumerate().any(|(index, batch)| {
            in_turn = in_turn.then(batch.cost);
            let with_mix = match self.is_in(mixing, index) {
                true => end,
                false => {
                    after = after.then(batch.cost);
                    after
                }
            };
            in_turn.at > batch.deadline && with_mix.at <= batch.deadline
        })
    }

    /// Whether someone who waits relies on the mix to be in time.
    pub(super) fn owes_a_mix(&self, now: Time, latency: &impl BatchLatency) -> bool {
        let begin = Outlook::from(now, 0.0);
        self.mixing_now().is_some_and(|mixing| {
            let end = self.end_of_round(mixing, None, begin, now, latency);
            end.is_some_and(|end| self.counts_on(mixing, begin, end))
        })
    }

    /// Whether a batch of the agenda would run as part of the mix: the first of each of its models.
    fn is_in(&self, mixing: &Mixing, index: usize) -> bool {
        let place = self.agenda.upcoming[index].place;
        let is_part = mixing.parts.iter().any(|(part, _)| *part == place);
        is_part && self.first_of(place) == Some(index)
    }

    /// The mix, where all of it waits and it is better to launch it now: the first batch of the agenda is in it, or one that
    /// counts on it.
    pub(super) fn mix_next(&self, now: Time, latency: &impl BatchLatency) -> Option<MixNext> {
        let mixing = self.mixing_now()?;
        let cost = self.cost_of_mix(mixing, latency)?;
        let whole = |&(place, count): &(usize, u32)| {
            let index = self.first_of(place)?;
            (self.agenda.upcoming[index].count == count).then_some(index)
        };
        let batches = mixing.parts.iter().map(whole).collect::<Option<Vec<usize>>>()?;
        let apart = batches.iter().map(|&index| self.agenda.upcoming[index].cost.duration);
        let apart = apart.fold(Span::ZERO, |all, one| all + one);
        let begin = Outlook::from(now, 0.0);
        let gains = batches.contains(&0) && cost.duration < apart * (1.0 - LEAST_GAIN);
        // Who was promised to be answered as part of it is, whatever else it gains.
        let is_better = (gains || self.counts_on(mixing, begin, begin.then(cost)))
            && self.agenda.tolerates_together(begin, begin, &batches, cost);
        is_better.then_some(MixNext { mix: mixing.mix, batches, cost, apart })
    }

    /// Launches all batches of a mix.
    pub(super) fn launch_mix(&mut self, next: MixNext, now: Time) -> Batch {
        let MixNext { mix, batches, cost, apart } = next;
        // Each model has its share of the time, by what it would have taken by itself.
        let share = cost.duration.nanos() as f64 / apart.nanos().max(1) as f64;
        let mut requests: Vec<Request> = Vec::new();
        for &index in &batches {
            let Upcoming { place, count, cost, .. } = self.agenda.upcoming[index];
            let first = requests.len();
            requests.extend(self.queues[place].requests.drain(..count as usize));
            let members = requests[first..].iter();
            let members = members.filter_map(|request| self.queues.member(request.model));
            self.shares.observe_launch(members.collect(), cost.duration * share);
        }
        self.waiting -= requests.len();
        let arrived = requests.iter().map(|request| request.arrived);
        if let (Some(mixing), Some(first), Some(last)) =
            (&mut self.mixing, arrived.clone().min(), arrived.max())
            && first + mixing.lag < last
        {
            // It is made of several rounds, whose others find what they belong to gone.
            mixing.apart_at = mixing.apart_at.max(Some(last));
        }
        let mut index = 0;
        self.agenda.upcoming.retain(|_| {
            index += 1;
            !batches.contains(&(index - 1))
        });
        self.best_effort.yield_for(cost.duration);
        self.set_busy_with(cost, now);
        // It cannot pause.
        self.occupant = None;
        let (model, expected) = (requests[0].model, cost.duration);
        Batch { model, mix: Some(mix), requests, expected }
    }

    /// How long the batches of a mix take one after another.
    fn apart(&self, mixing: &Mixing, latency: &impl BatchLatency) -> Span {
        let alone = |&(place, count): &(usize, u32)| latency.of(self.queues[place].model, count);
        mixing.parts.iter().map(alone).fold(Span::ZERO, |all, one| all + one)
    }

    fn cost_of_mix(&self, mixing: &Mixing, latency: &impl BatchLatency) -> Option<Cost> {
        let MixLatency { share, spread } = latency.of_mix(mixing.mix)?;
        let of_models =
            mixing.parts.iter().map(|(place, _)| latency.spread(self.queues[*place].model));
        let spread = of_models.fold(spread, f64::max);
        Some(Cost::new(self.apart(mixing, latency) * share, spread))
    }

    /// How many requests the first batch of a queue has.
    fn count_of_first(&self, place: usize) -> u32 {
        self.first_of(place).map_or(0, |index| self.agenda.upcoming[index].count)
    }

    /// Which of the agenda's batches is the first of a queue.
    fn first_of(&self, place: usize) -> Option<usize> {
        self.agenda.upcoming.iter().position(|batch| batch.is_of(place))
    }
}

impl Mixing {
    /// Whether one who came at this instant may be of a round of which another came apart.
    fn is_broken(&self, arrived: Time) -> bool {
        self.apart_at.is_some_and(|apart_at| arrived <= apart_at + self.lag)
    }
}

/// A mix to be launched now.
pub(super) struct MixNext {
    mix: MixId,
    /// Its batches, by their places on the agenda.
    batches: Vec<usize>,
    cost: Cost,
    /// What they take one after another.
    apart: Span,
}
