//! A lane: the queue of one partition. It orders requests by deadline, gathers batches, predicts and refuses.
//!
//! # What is promised
//!
//! A lane knows at every instant which batches it will run and in which order: its agenda. A request that comes is put on it
//! where it disturbs no one: into the last batch of its model, or into a new batch behind those that are due earlier. It is
//! accepted if it is then answered in time **and** everyone accepted before still is, both with a margin for what durations
//! stray from their prediction: so many standard deviations, learned from the promises that were kept and broken.
//!
//! # Groups
//!
//! Models that are members of one group share batches: in all of this they are one model with one queue ([`queues`]). How
//! much each may have of it is its own matter ([`shares`]). Requests that came late keep others out of their batch
//! ([`holding`]); those of a member that is [apart](Lane::prospect_apart) have a queue of their own, and run only where the
//! lane has nothing else to do.
//!
//! # Mixes
//!
//! Batches of different models that come together again and again may run in one launch, where the device has a schedule for
//! them ([`mixing`]).
//!
//! # Blocking
//!
//! A batch that was launched runs to its end, unless the device can pause it for someone who is due before it (see
//! [`interruption`]). It delays those that wait by no more than they can bear, since the agenda was
//! made so; where durations strayed, the batch is launched at the size at which the fewest requests are lost. It delays
//! requests that are yet to come by the duration of the largest batch of any model in the lane, which is the plan's to
//! limit ([`BatchLatency::largest_batch`]).

mod agenda;
mod batch_latency;
mod best_effort;
#[cfg(test)]
mod group_tests;
mod holding;
mod interruption;
#[cfg(test)]
mod interruption_tests;
mod lane_model;
mod launch;
mod mixing;
#[cfg(test)]
mod mixing_tests;
mod outlook;
#[cfg(test)]
mod properties;
mod queues;
mod shares;
mod taking_back;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub use batch_latency::BatchLatency;
pub use lane_model::LaneModel;
pub use launch::Batch;
pub use mixing::{LaneMix, MixLatency};
pub(crate) use taking_back::LaneBefore;

use crate::identity::ModelId;
use crate::policy::Refusal;
use crate::request::Request;
use crate::time::{Span, Time};

use agenda::{Agenda, Newcomer, Spot, Upcoming};
use best_effort::BestEffort;
use interruption::Occupant;
use mixing::Mixing;
use outlook::{Cost, Outlook};
use queues::Queues;
use shares::{Headroom, Shares};

/// What would become of a request in a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prospect {
    /// By when it would be answered, with a margin.
    pub finish: Time,
    /// Until when the lane must have time: its answer, and what it must leave to others.
    pub claim: Time,
    /// How much longer the lane is busy with it.
    pub added: Span,
    newcomer: Newcomer,
    /// `None` is for best effort, which is on no agenda.
    spot: Option<Spot>,
}

/// The requests that wait for one partition.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The requests with a deadline of the models that run here.
    queues: Queues,
    agenda: Agenda,
    best_effort: BestEffort,
    shares: Shares,
    /// All together.
    waiting: usize,
    limit: usize,
    /// When what runs is predicted to end.
    busy_until: Time,
    /// The standard deviation of that.
    busy_deviation_ns: f64,
    /// What runs, where it was launched from here.
    occupant: Option<Occupant>,
    /// Whether what runs can be paused.
    can_interrupt: bool,
    mixing: Option<Mixing>,
}

impl Lane {
    /// An empty lane for these models that holds at most `limit` requests.
    pub fn new(models: impl IntoIterator<Item = LaneModel>, limit: usize) -> Self {
        let mut models: Vec<LaneModel> = models.into_iter().collect();
        models.sort_by_key(|one| one.model);
        models.dedup_by_key(|one| one.model);
        let queues = Queues::new(&models);
        Self {
            best_effort: BestEffort::new(&models, queues.places()),
            shares: Shares::new(&models, queues.places()),
            queues,
            agenda: Agenda::default(),
            waiting: 0,
            limit,
            busy_until: Time::START,
            busy_deviation_ns: 0.0,
            occupant: None,
            can_interrupt: false,
            mixing: None,
        }
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// When the partition is predicted to be free.
    pub fn free_at(&self, now: Time) -> Time {
        self.busy_until.max(now)
    }

    /// What runs ends at this time, or has ended.
    pub fn set_busy_until(&mut self, at: Time) {
        (self.busy_until, self.busy_deviation_ns, self.occupant) = (at, 0.0, None);
    }

    /// What runs ends so much later.
    pub fn delay(&mut self, by: Span) {
        self.busy_until = self.busy_until + by;
    }

    /// When the agenda begins for who comes now.
    fn begin(&self, now: Time) -> Outlook {
        let free = Outlook::from(self.free_at(now), self.busy_deviation_ns);
        self.best_effort.set_aside.map_or(free, |cost| free.then(cost))
    }

    /// Takes out all that waits; what is paused stays.
    pub fn take_waiting(&mut self) -> Vec<Request> {
        self.waiting = 0;
        self.agenda.upcoming.retain(|batch| batch.is_paused);
        self.agenda.count(0);
        let mut all = self.best_effort.take_all();
        all.extend(self.queues.drain());
        all
    }

    /// When a request would be answered if it came now, and where it would run, such that no one who waits is late for it;
    /// `None` where its model does not run here.
    pub fn prospect(
        &self,
        request: &Request,
        now: Time,
        latency: &impl BatchLatency,
    ) -> Option<Prospect> {
        let member = self.queues.member(request.model)?;
        Some(self.prospect_at(self.queues.place(member), member, request, now, latency))
    }

    /// The same for a member of a group that shares no batches with it at present. What it must leave to others is all of
    /// the lane's time but for what nobody else asks for: it is taken in only where nothing runs and nothing else waits.
    pub fn prospect_apart(
        &self,
        request: &Request,
        now: Time,
        latency: &impl BatchLatency,
    ) -> Option<Prospect> {
        let member = self.queues.member(request.model)?;
        let place = self.queues.place_apart(member);
        let mut prospect = self.prospect_at(place, member, request, now, latency);
        let is_own = |batch: &Upcoming| batch.is_of(place);
        let is_idle = self.free_at(now) == now && self.agenda.upcoming.iter().all(is_own);
        if prospect.spot.is_some() && !is_idle {
            prospect.claim = Time::NEVER;
        }
        Some(prospect)
    }

    fn prospect_at(
        &self,
        place: usize,
        member: usize,
        request: &Request,
        now: Time,
        latency: &impl BatchLatency,
    ) -> Prospect {
        let queue = &self.queues[place];
        let model = queue.model;
        let mut newcomer = Newcomer {
            member,
            place,
            deadline: request.deadline,
            certainty: latency.certainty(model),
            headroom: Headroom::default(),
            is_first: queue.requests.is_empty(),
        };
        if request.deadline == Time::NEVER {
            let after = self.begin(now).after(self.agenda.all()).at;
            let finish = after + self.best_effort.work(model, latency);
            let added = latency.of(model, 1);
            return Prospect { finish, claim: finish, added, newcomer, spot: None };
        }
        let (largest, spread) = (latency.largest_batch(model), latency.spread(model));
        let longest = self.shares.longest(member);
        let cost_of = |count: u32| {
            let duration = latency.of(model, count.min(largest));
            let is_allowed = count == 1 || (count <= largest && duration <= longest);
            is_allowed.then(|| Cost::new(duration, spread))
        };
        // A lane that has nothing to do serves whoever comes.
        if self.waiting > 0 || self.free_at(now) > now {
            let time_left = request.deadline.since(now);
            let waiting = self.agenda.upcoming.iter().filter(|batch| !batch.is_paused);
            let waiting =
                waiting.map(|batch| (self.queues[batch.place].first, batch.cost.duration));
            newcomer.headroom = self.shares.headroom(member, time_left, waiting);
        }
        let alone = cost_of(1).unwrap_or_default();
        let interruption = self.interruption(&newcomer, alone, now);
        let in_turn = || self.agenda.spot(self.begin(now), newcomer, cost_of);
        let prospect = |outlook: Outlook, spot: Spot, left: Span| {
            let finish = outlook.surely_at(newcomer.certainty);
            let added = self.agenda.added(spot);
            Prospect { finish, claim: finish + left, added, newcomer, spot: Some(spot) }
        };
        let in_mix = || {
            // Without it the others of the mix would run by themselves, and leave less to everybody.
            let (outlook, spot) = self.spot_in_mix(&newcomer, now, latency)?;
            Some(prospect(outlook, spot, Span::ZERO))
        };
        // What waits as a mix has been promised what holds only if nothing comes before it, and all of it does.
        let after_mix = self.spot_after_mix(&newcomer, now, latency);
        if after_mix.is_some()
            && let Some(prospect) = in_mix()
        {
            return prospect;
        }
        let (outlook, spot) = after_mix.or(interruption).unwrap_or_else(in_turn);
        let left = match spot {
            Spot::Joined(..) => newcomer.headroom.room,
            Spot::New(..) | Spot::Interrupting { .. } => newcomer.headroom.opening,
        };
        let by_itself = prospect(outlook, spot, left);
        if by_itself.claim <= request.deadline {
            return by_itself;
        }
        in_mix().unwrap_or(by_itself)
    }

    /// Takes in a request whose prospect was asked for just now, or says why not: it would be late, there is no room, or
    /// what room there is must be left to others.
    pub fn admit(&mut self, request: Request, prospect: Prospect) -> Result<(), Refusal> {
        let outcome = self.judge(&request, &prospect);
        match outcome {
            Ok(()) => self.accept(request, prospect),
            Err(_) => self.decline(&request, &prospect),
        }
        outcome
    }

    /// Takes in a request that may be, by its prospect.
    pub(crate) fn accept(&mut self, request: Request, prospect: Prospect) {
        self.observe_arrival(&prospect, false);
        self.waiting += 1;
        match prospect.spot {
            None => self.best_effort.put(prospect.newcomer.member, request),
            Some(spot) => {
                self.queues[prospect.newcomer.place].requests.push_back(request);
                self.take_in(prospect.newcomer, spot);
            }
        }
    }

    /// Learns that a request with such a prospect is refused.
    pub(crate) fn decline(&mut self, request: &Request, prospect: &Prospect) {
        self.observe_arrival(prospect, true);
        self.note_apart(prospect.newcomer.place, request.arrived);
    }

    fn observe_arrival(&mut self, prospect: &Prospect, is_refused: bool) {
        let Newcomer { member, place, .. } = prospect.newcomer;
        // What is refused to who is apart says nothing of the lane.
        if prospect.spot.is_some() && place == self.queues.place(member) {
            self.shares.observe_arrival(member, is_refused);
        }
    }

    fn take_in(&mut self, newcomer: Newcomer, spot: Spot) {
        if let Spot::Interrupting { rest, due, .. } = spot {
            self.pause(rest, due);
        }
        self.agenda.take_in(newcomer, spot);
    }

    /// Whether a request may be taken in whose prospect was asked for just now, or why not.
    pub(crate) fn judge(&self, request: &Request, prospect: &Prospect) -> Result<(), Refusal> {
        let predicted = prospect.finish.since(request.arrived);
        if self.waiting >= self.limit {
            Err(Refusal::QueueFull)
        } else if prospect.finish > request.deadline {
            Err(Refusal::TooLate { predicted })
        } else if prospect.claim > request.deadline {
            Err(Refusal::OverShare { predicted })
        } else {
            Ok(())
        }
    }

    /// Takes in a request that was accepted before, elsewhere, whose prospect was asked for just now. It runs by its
    /// deadline among those of its model or group.
    pub fn put(&mut self, request: Request, prospect: Prospect) {
        self.waiting += 1;
        let Some(spot) = prospect.spot else {
            self.best_effort.put(prospect.newcomer.member, request);
            return;
        };
        let place = prospect.newcomer.place;
        let queue = &mut self.queues[place].requests;
        let after = queue.partition_point(|other| other.deadline <= request.deadline);
        queue.insert(after, request);
        self.take_in(prospect.newcomer, spot);
        // Those behind it may have moved to the next batch.
        let queue = &self.queues[place].requests;
        let own = self.agenda.upcoming.iter_mut().filter(|batch| batch.is_of(place));
        let mut first = 0;
        for batch in own {
            let count = batch.count as usize;
            batch.deadline = earliest(queue, first, count);
            first += count;
        }
    }
}

/// The earliest deadline among so many requests from one on.
fn earliest(queue: &VecDeque<Request>, first: usize, count: usize) -> Time {
    let deadlines = queue.range(first..first + count).map(|request| request.deadline);
    deadlines.min().unwrap_or(Time::NEVER)
}

/// What a batch costs.
fn cost(latency: &impl BatchLatency, model: ModelId, count: u32) -> Cost {
    match count {
        0 => Cost::default(),
        _ => Cost::new(latency.of(model, count), latency.spread(model)),
    }
}
