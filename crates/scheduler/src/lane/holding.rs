//! Who keeps others out of a batch: a request that came late, whose batch can take in no more if it is to be in time.

use super::agenda::{Newcomer, Spot};
use super::{BatchLatency, Lane, Prospect};
use crate::identity::ModelId;
use crate::request::Request;
use crate::time::{Span, Time};

/// A request is late that has less than this share of its objective left when it comes.
const PUNCTUAL: f64 = 0.9;

fn is_late(request: &Request, slo: Span) -> bool {
    request.deadline.since(request.arrived) < slo * PUNCTUAL
}

impl Lane {
    /// The member that keeps a request of another out of the batch that is gathered, where its prospect was asked for just
    /// now: without the other's late requests it could be in that batch, and all in it would be in time.
    pub fn held_up_by(
        &self,
        request: &Request,
        prospect: &Prospect,
        now: Time,
        latency: &impl BatchLatency,
    ) -> Option<ModelId> {
        let Newcomer { place, certainty, is_first, .. } = prospect.newcomer;
        let queue = &self.queues[place];
        let slo = queue.slo?;
        if is_first || !matches!(prospect.spot, Some(Spot::New(..))) || is_late(request, slo) {
            return None;
        }
        let mut own = self.agenda.upcoming.iter().filter(|batch| batch.is_of(place));
        let gathered = own.next_back()?;
        let count = gathered.count + 1;
        if count > latency.largest_batch(queue.model) {
            return None;
        }
        let cost = super::cost(latency, queue.model, count);
        let joined = self.begin(now).after(gathered.before).then(cost);
        let is_in_time = |deadline: Time| joined.keeps(deadline, certainty);
        let before: usize = own.map(|batch| batch.count as usize).sum();
        let others = queue.requests.range(before..before + gathered.count as usize);
        let (late, punctual): (Vec<&Request>, Vec<&Request>) =
            others.partition(|other| is_late(other, slo));
        let is_free_to_join =
            is_in_time(request.deadline) && punctual.iter().all(|other| is_in_time(other.deadline));
        let most_urgent = late.into_iter().min_by_key(|other| other.deadline)?;
        let is_held_up = is_free_to_join && !is_in_time(most_urgent.deadline);
        (is_held_up && most_urgent.model != request.model).then_some(most_urgent.model)
    }
}
