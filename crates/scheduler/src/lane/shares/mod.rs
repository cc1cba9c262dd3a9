//! Who may have how much of a lane when not everyone can be served.
//!
//! # The rule
//!
//! A lane is overloaded while it refuses more than a few of its requests. Then its time is divided: from the highest
//! priority to the lowest, models of one priority get what they ask for, but where that is more than is left, what is left
//! is shared in proportion to weights, and what one does not need of its share goes to the others (max-min fairness). What
//! a model asks for is how many requests come, times what one of them takes in a batch of half its objective.
//!
//! Shares are not cut out of what was promised: no request is dropped for fairness. They are held at the door, by how
//! *full* a model may make the lane:
//!
//! * A model that asks for more than its share must leave **room for those who do not**, and everyone for those of a higher
//!   priority: a request is accepted only if it would be in time even if it were answered that much later. What they bring
//!   then fits, and while they use the room, no one comes in who must leave it.
//! * Among models that all ask for more than their share, the one that had more than its share of late must leave room
//!   for those that had less.
//!
//! The lane loses no time by this, since it is full up to the room that is left. The room is for two things. Others whose
//! objective is tighter by `t` will come and be due before the request: what they may have of the time `t`. And others
//! bring much at once: for work that comes in pieces `p` and takes the share `r` of the time, the backlog exceeds `x` with a
//! probability of about `exp(-2 x (1 - r) / p)`, so `p ln(1/e) / (2 (1 - r))` is enough for all but the share `e` of it. Room
//! is never more than those for whom it is left may have of the time to the deadline. A lane that has nothing to do serves
//! whoever comes, so that no priority starves while there is time.
//!
//! A model that asks for more than its share also opens a batch only where that has room to grow to what is worth a launch:
//! single requests squeezed in just before their deadline would cost the lane a launch each. Where no one asks for more than
//! its share and still many are refused, launches are what time is lost on: then all do so, the more, the more is refused.
//!
//! A batch of several requests takes no longer than models of a higher priority can bear to be blocked, and no longer than
//! those can bear that have less than their share. Nor does all that waits of lower priorities: each of these batches has
//! been promised its turn, and when the last moment comes for one, it may have come for all.
//!
//! Members of a group run together, so that none of this holds between them: they neither block each other nor take turns.
//! They share by another rule; see [`parts`].

mod account;
mod division;
mod parts;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use account::Account;

use crate::identity::ModelId;
use crate::lane::{BatchLatency, LaneModel};
use crate::time::{Span, Time};

/// How much of the distance a single outcome moves the share of refused requests.
const REFUSED_WEIGHT: f64 = 0.01;
/// A lane that refuses more than this share of its requests is overloaded.
const OVERLOAD: f64 = 0.04;
/// In a lane that refuses this share, everyone opens only batches that can grow.
const SCARCE: f64 = 0.3;
/// Averages are taken over this many times the longest objective in the lane.
const WINDOW_OBJECTIVES: f64 = 20.0;
/// The window where there are no objectives.
const DEFAULT_WINDOW: Span = Span::from_nanos(1_000_000_000);
/// The lane's time is divided anew this many times in a window.
const DIVISIONS: f64 = 32.0;
/// A batch that takes this many times as long as one item is worth waiting for.
const WORTHWHILE: f64 = 2.0;
/// The share of its objective, less one item, that a model may be blocked by a batch of a lower priority.
const BLOCKING: f64 = 0.5;

/// What a request must leave to others besides being in time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Headroom {
    /// Time between its answer and its deadline.
    pub(super) room: Span,
    /// The same where it opens a new batch.
    pub(super) opening: Span,
}

/// The accounts of a lane's models, by their numbers as members.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    models: Vec<LaneModel>,
    accounts: Vec<Account>,
    /// By member, the place of its queue: the same for those that run together.
    places: Vec<usize>,
    /// By place, the first of its members.
    firsts: Vec<usize>,
    /// The members of each priority, the highest first.
    classes: Vec<Vec<usize>>,
    highest_priority: u8,
    window_ns: f64,
    refused: f64,
    does_anyone_ask_for_more: bool,
    divided_at: Option<Time>,
}

impl Shares {
    /// For models that run together where they have the same place.
    pub(super) fn new(models: &[LaneModel], places: Vec<usize>) -> Self {
        let mut by_priority: Vec<usize> = (0..models.len()).collect();
        by_priority.sort_by_key(|&member| Reverse(models[member].priority));
        let classes =
            by_priority.chunk_by(|&one, &other| models[one].priority == models[other].priority);
        let longest = models.iter().filter_map(|model| model.slo).max();
        let window = longest.map_or(DEFAULT_WINDOW, |slo| slo * WINDOW_OBJECTIVES);
        let place_count = places.iter().map(|place| place + 1).max().unwrap_or(0);
        let first = |place| places.iter().position(|other| *other == place).unwrap_or(0);
        Self {
            accounts: models.iter().map(Account::new).collect(),
            firsts: (0..place_count).map(first).collect(),
            places,
            classes: classes.map(<[usize]>::to_vec).collect(),
            highest_priority: models.iter().map(|model| model.priority).max().unwrap_or(0),
            models: models.to_vec(),
            window_ns: window.nanos() as f64,
            refused: 0.0,
            does_anyone_ask_for_more: false,
            divided_at: None,
        }
    }

    fn is_overloaded(&self) -> bool {
        self.refused > OVERLOAD
    }

    /// A request came and was refused, or not. What is refused to who has more than its part says nothing of the lane.
    pub(super) fn observe_arrival(&mut self, member: usize, is_refused: bool) {
        let account = &mut self.accounts[member];
        account.observe_arrival(is_refused);
        if is_refused && account.room_to_mates > 0.0 {
            return;
        }
        self.refused += REFUSED_WEIGHT * (f64::from(u8::from(is_refused)) - self.refused);
    }

    /// A request that was accepted just now has never come.
    pub(super) fn take_back_arrival(&mut self, member: usize) {
        self.accounts[member].take_back_arrival();
        self.refused /= 1.0 - REFUSED_WEIGHT;
    }

    /// Requests of these members are launched together; each takes the same part of the time.
    pub(super) fn observe_launch(&mut self, mut members: Vec<usize>, duration: Span) {
        let request_ns = duration.nanos() as f64 / members.len().max(1) as f64;
        members.sort_unstable();
        for own in members.chunk_by(|one, other| one == other) {
            self.accounts[own[0]].observe_launch(duration, request_ns, own.len());
        }
    }

    /// The longest that a batch of several requests may take.
    pub(super) fn longest(&self, member: usize) -> Span {
        self.accounts[member].longest
    }

    /// What a request with so much time to its deadline must leave to others, where batches wait, each a member's and so
    /// long.
    pub(super) fn headroom(
        &self,
        member: usize,
        time_left: Span,
        waiting: impl Iterator<Item = (usize, Span)>,
    ) -> Headroom {
        let account = &self.accounts[member];
        let to_mates = time_left * account.room_to_mates;
        if !self.is_overloaded() {
            return Headroom { room: to_mates, opening: to_mates };
        }
        let priority = self.models[member].priority;
        if account.longest < Span::MAX && self.highest_priority > priority {
            let blocking = waiting.filter(|(other, _)| self.models[*other].priority <= priority);
            let convoy = blocking.fold(Span::ZERO, |sum, (_, duration)| sum + duration);
            if convoy > Span::ZERO && convoy + account.alone > account.longest {
                return Headroom { room: Span::MAX, opening: Span::MAX };
            }
        }
        let room = if account.is_ahead() { account.room_ahead } else { account.room };
        let room = room.before(time_left).max(to_mates);
        let scarcity = ((self.refused - OVERLOAD) / (SCARCE - OVERLOAD)).clamp(0.0, 1.0);
        let growth = match (account.asks_for_more, self.does_anyone_ask_for_more) {
            (true, _) => account.growth,
            (false, true) => Span::ZERO,
            (false, false) => account.growth * scarcity,
        };
        Headroom { room, opening: room.max(growth) }
    }

    /// Divides the lane's time anew, if that was not done just before; `waiting` tells by member how many of its requests
    /// wait.
    pub(super) fn divide(
        &mut self,
        now: Time,
        latency: &impl BatchLatency,
        waiting: impl FnOnce() -> Vec<usize>,
    ) {
        let least_ns = self.window_ns / DIVISIONS;
        let since = |at: Time| now.since(at).nanos() as f64;
        let elapsed_ns = self.divided_at.map_or(least_ns, since);
        if elapsed_ns < least_ns {
            return;
        }
        self.divided_at = Some(now);
        let weight = elapsed_ns / (elapsed_ns + self.window_ns);
        self.accounts.iter_mut().for_each(|account| account.average(elapsed_ns, weight));
        let is_overloaded = self.is_overloaded();
        let has_groups = self.firsts.len() < self.places.len();
        if !is_overloaded && self.classes.len() == 1 && !has_groups {
            self.accounts.iter_mut().for_each(|account| account.longest = Span::MAX);
            return;
        }
        self.look_up(latency);
        if has_groups {
            parts::set_room(&mut self.accounts, &self.places, self.window_ns);
        }
        if is_overloaded {
            division::share_out(&mut self.accounts, &self.classes);
            self.settle(waiting);
        }
        self.limit_blocking();
        if is_overloaded {
            division::set_room(&mut self.accounts, &self.classes, &self.places);
            let mut place_shares = vec![0.0; self.firsts.len()];
            let members = self.places.iter().zip(&self.accounts);
            members.for_each(|(&place, account)| place_shares[place] += account.share);
            for (member, account) in self.accounts.iter_mut().enumerate() {
                let share = place_shares[self.places[member]];
                account.growth = growth(account, share, self.models[member].model, latency);
            }
        }
    }

    /// Looks up what requests take, once for those that run together.
    fn look_up(&mut self, latency: &impl BatchLatency) {
        for member in 0..self.accounts.len() {
            let first = self.firsts[self.places[member]];
            let looked_up = match first == member {
                true => self.accounts[member].looked_up(self.models[member].model, latency),
                false => self.accounts[first].as_looked_up(),
            };
            self.accounts[member].know(looked_up);
        }
    }

    /// Takes stock of who has more than its share.
    fn settle(&mut self, waiting: impl FnOnce() -> Vec<usize>) {
        self.does_anyone_ask_for_more = self.accounts.iter().any(|account| account.asks_for_more);
        let claimed =
            |(account, waiting): (&Account, usize)| account.claimed_ns(self.window_ns, waiting);
        let claimed_ns: Vec<f64> = self.accounts.iter().zip(waiting()).map(claimed).collect();
        let all_ns: f64 = claimed_ns.iter().sum();
        for (account, own_ns) in self.accounts.iter_mut().zip(claimed_ns) {
            account.settle(all_ns, own_ns);
        }
    }

    /// Limits how long batches take by what those can bear who may not be blocked: models of a higher priority, and under
    /// overload those that have less than their share. Who cannot bear even a single request of every model is not helped
    /// by it.
    fn limit_blocking(&mut self) {
        let is_overloaded = self.is_overloaded() && self.does_anyone_ask_for_more;
        let asking = self.accounts.iter().filter(|account| account.share > 0.0);
        let longest_alone = asking.map(|account| account.alone).max().unwrap_or(Span::ZERO);
        for (place, &first) in self.firsts.iter().enumerate() {
            let priority = self.models[first].priority;
            let alone = self.accounts[first].alone;
            let others = self.models.iter().zip(&self.accounts).zip(&self.places);
            let bearable = others.filter_map(|((other, account), &other_place)| {
                let is_behind = is_overloaded && account.had < account.share;
                let is_spared = other.priority > priority
                    || (is_behind && other.priority >= priority && other_place != place);
                let slack = other.slo?.saturating_sub(account.alone) * BLOCKING;
                (is_spared && slack >= alone.max(longest_alone)).then_some(slack)
            });
            let longest = bearable.min().unwrap_or(Span::MAX);
            let own = self.places.iter().zip(&mut self.accounts);
            let own = own.filter(|(other_place, _)| **other_place == place);
            own.for_each(|(_, account)| account.longest = longest);
        }
    }
}

/// By how much a batch must be able to grow for it to be worth a launch, where those that run in it have a share of the lane
/// together. Where everyone's turn takes `share / (1 + share)` of its objective, there is time for a turn of each other
/// model between arrival and answer.
fn growth(account: &Account, share: f64, model: ModelId, latency: &impl BatchLatency) -> Span {
    let Some(slo) = account.slo else { return Span::ZERO };
    let turn = (slo * (share / (1.0 + share))).max(account.alone * WORTHWHILE);
    let longest = turn.min(slo * 0.5).min(account.longest);
    let batch = account.largest_within(longest, model, latency);
    latency.of(model, batch).saturating_sub(account.alone)
}
