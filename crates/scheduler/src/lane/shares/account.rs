//! What a lane knows about what one of its models asks for, has had and may have.

use super::division::Room;
use crate::identity::ModelId;
use crate::lane::{BatchLatency, LaneModel};
use crate::time::Span;

/// How much of the distance a single launch moves what requests and launches of a model take.
const TAKEN_WEIGHT: f64 = 0.1;

/// One model's account.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    pub(super) slo: Option<Span>,
    pub(super) weight: f64,
    /// What one request takes alone, and what it takes at least, in a batch of half its objective.
    pub(super) alone: Span,
    least_ns: f64,
    /// Requests and time since the averages were last taken.
    arrived: u32,
    accepted: u32,
    taken_ns: f64,
    /// Requests per nanosecond, on average: those that came, and those that were accepted.
    rate: f64,
    accepted_rate: f64,
    /// The share of the lane's time that it had, on average.
    pub(super) had: f64,
    /// What a request and a launch take, on average.
    request_ns: f64,
    pub(super) launch_ns: f64,
    /// The share of the lane's time that it may have.
    pub(super) share: f64,
    /// Whether it asks for more than that.
    pub(super) asks_for_more: bool,
    /// What it may still be promised before it has more than its share.
    credit_ns: f64,
    /// The room that it must leave to others while it has no more than its share, and when it has.
    pub(super) room: Room,
    pub(super) room_ahead: Room,
    /// The share of the time to its deadline that a request must leave to others of its group.
    pub(super) room_to_mates: f64,
    /// By how much a batch must be able to grow for it to be opened.
    pub(super) growth: Span,
    /// The longest that a batch of several requests may take.
    pub(super) longest: Span,
}

impl Account {
    pub(super) fn new(model: &LaneModel) -> Self {
        Self {
            slo: model.slo,
            weight: model.weight.max(f64::MIN_POSITIVE),
            longest: Span::MAX,
            ..Default::default()
        }
    }

    pub(super) fn observe_arrival(&mut self, is_refused: bool) {
        self.arrived += 1;
        if !is_refused {
            self.accepted += 1;
            self.credit_ns -= self.request_ns;
        }
    }

    /// A request that was accepted just now has never come.
    pub(super) fn take_back_arrival(&mut self) {
        self.arrived -= 1;
        self.accepted -= 1;
        self.credit_ns += self.request_ns;
    }

    /// So many of its requests are in a launch, each of which takes so much of the duration.
    pub(super) fn observe_launch(&mut self, duration: Span, request_ns: f64, requests: usize) {
        let duration_ns = duration.nanos() as f64;
        self.taken_ns += request_ns * requests as f64;
        let weight = if self.request_ns == 0.0 { 1.0 } else { TAKEN_WEIGHT };
        self.request_ns += weight * (request_ns - self.request_ns);
        self.launch_ns += weight * (duration_ns - self.launch_ns);
    }

    /// What requests take at present: one alone, and at least.
    pub(super) fn looked_up(&self, model: ModelId, latency: &impl BatchLatency) -> (Span, f64) {
        let longest = self.slo.map_or(Span::MAX, |slo| slo * 0.5);
        let batch = self.largest_within(longest, model, latency);
        let least_ns = latency.of(model, batch).nanos() as f64 / f64::from(batch);
        (latency.of(model, 1), least_ns)
    }

    /// The same as when it was last looked up.
    pub(super) fn as_looked_up(&self) -> (Span, f64) {
        (self.alone, self.least_ns)
    }

    /// Takes in what was looked up.
    pub(super) fn know(&mut self, (alone, least_ns): (Span, f64)) {
        (self.alone, self.least_ns) = (alone, least_ns);
        if self.request_ns == 0.0 {
            let alone_ns = alone.nanos() as f64;
            (self.request_ns, self.launch_ns) = (alone_ns, alone_ns);
        }
    }

    /// The largest batch that takes no longer; at least 1.
    pub(super) fn largest_within(
        &self,
        longest: Span,
        model: ModelId,
        latency: &impl BatchLatency,
    ) -> u32 {
        let fits = |batch: &u32| latency.of(model, *batch) <= longest;
        (2..=latency.largest_batch(model)).rev().find(fits).unwrap_or(1)
    }

    /// Takes what came and was launched in the last nanoseconds into the averages.
    pub(super) fn average(&mut self, elapsed_ns: f64, weight: f64) {
        self.rate += weight * (f64::from(self.arrived) / elapsed_ns - self.rate);
        self.accepted_rate += weight * (f64::from(self.accepted) / elapsed_ns - self.accepted_rate);
        self.had += weight * (self.taken_ns / elapsed_ns - self.had);
        (self.arrived, self.accepted, self.taken_ns) = (0, 0, 0.0);
    }

    /// The share of the lane's time that it asks for, in batches as they are when many wait.
    pub(super) fn demand(&self) -> f64 {
        self.rate * self.least_ns
    }

    /// How many of its requests were accepted in a time, and how many a share of the lane would be, in such batches.
    pub(super) fn accepted_beside(&self, share: f64, time_ns: f64) -> (f64, f64) {
        (self.accepted_rate * time_ns, share * time_ns / self.least_ns.max(1.0))
    }

    /// The share of its objective that one request takes alone; all of it where there is none.
    pub(super) fn alone_share(&self) -> f64 {
        self.slo.map_or(1.0, |slo| self.alone.nanos() as f64 / slo.nanos().max(1) as f64)
    }

    /// How many of its requests came in a time.
    pub(super) fn asked_in(&self, time_ns: f64) -> f64 {
        self.rate * time_ns
    }

    /// The share of the lane's time that it will take: who does not ask for much has smaller batches than could be.
    pub(super) fn takes(&self) -> f64 {
        let as_of_late = (self.rate * self.request_ns).min(1.0);
        if self.asks_for_more { self.share } else { self.share.max(as_of_late) }
    }

    /// What it had in a window, and what so many waiting requests have been promised besides.
    pub(super) fn claimed_ns(&self, window_ns: f64, waiting: usize) -> f64 {
        self.had * window_ns + self.request_ns * waiting as f64
    }

    /// Takes stock: of what all have claimed, and of its part in that.
    pub(super) fn settle(&mut self, all_ns: f64, own_ns: f64) {
        self.credit_ns = self.share * all_ns - own_ns;
    }

    /// Whether it has more than its share, with what it has been promised.
    pub(super) fn is_ahead(&self) -> bool {
        self.credit_ns < 0.0
    }
}
