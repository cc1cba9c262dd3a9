//! Somebody who looks on and counts for himself, so that the simulator's own checks are checked too.

use std::collections::BTreeSet;

use weft_scheduler::{ModelId, PartitionId, Refusal, Request, RequestId, Span, Time, UnitMask};
use weft_simulator::{Executed, Observer, Outcome, World};

/// What has become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Answered,
    Declined,
}

/// What was seen.
pub(crate) struct Witness<'a> {
    world: &'a World,
    /// By number.
    requests: Vec<(Request, Fate)>,
    /// By unit: what ran there last, from when to when.
    last: Vec<Vec<(Time, Time)>>,
    active: Vec<(PartitionId, UnitMask)>,
    /// When requests were answered that came, by model: arrival and answer.
    answers: Vec<Vec<(Time, Time)>>,
}

impl<'a> Witness<'a> {
    pub(crate) fn new(world: &'a World) -> Self {
        Self {
            world,
            requests: Vec::new(),
            last: vec![Vec::new(); world.units as usize],
            active: Vec::new(),
            answers: vec![Vec::new(); world.models.len()],
        }
    }

    fn end(&mut self, id: RequestId, fate: Fate) -> Request {
        let (request, before) = &mut self.requests[id.0 as usize];
        assert_eq!(*before, Fate::Open, "{id:?} ends twice");
        *before = fate;
        *request
    }

    /// Nothing is left open, and the outcome says what was seen.
    pub(crate) fn agrees(&self, outcome: &Outcome, place: &str) {
        for (index, model) in outcome.models.iter().enumerate() {
            let own =
                self.requests.iter().filter(|(request, _)| request.model == ModelId(index as u32));
            let count =
                |wanted: Fate| own.clone().filter(|(_, fate)| *fate == wanted).count() as u64;
            assert_eq!(count(Fate::Open), 0, "{place}: lost");
            assert_eq!(count(Fate::Answered), model.in_time + model.late, "{place}: answered");
            assert_eq!(count(Fate::Declined), model.refused + model.shed, "{place}: declined");
        }
    }

    /// In every window in which a good number of a model's requests came, some of them were answered.
    pub(crate) fn answers_all(&self, begin: Time, end: Time, window: Span, place: &str) {
        let mut from = begin;
        while from + window <= end {
            let is_in = |at: Time| at >= from && at < from + window;
            for (index, model) in self.world.models.iter().enumerate() {
                let came = self.requests.iter().filter(|(request, _)| {
                    request.model == ModelId(index as u32) && is_in(request.arrived)
                });
                let answered = self.answers[index].iter().filter(|(_, answer)| is_in(*answer));
                let (came, answered) = (came.count(), answered.count());
                assert!(
                    came < 5 || answered > 0,
                    "{place}: none of {came} requests of {} answered in {window} from {:?}",
                    model.name,
                    from.since(begin)
                );
            }
            from = from + window * 0.5;
        }
    }
}

impl Observer for Witness<'_> {
    fn arrived(&mut self, request: &Request) {
        assert_eq!(request.id.0 as usize, self.requests.len(), "numbers rise by one");
        self.requests.push((*request, Fate::Open));
    }

    fn refused(&mut self, request: &Request, _: Refusal, _: Time) {
        self.end(request.id, Fate::Declined);
    }

    fn shed(&mut self, request: &Request, _: Time) {
        self.end(request.id, Fate::Declined);
    }

    fn executed(&mut self, executed: Executed<'_>) {
        let Executed { partition, units, model, tenants, requests, start, end } = executed;
        assert!(self.active.contains(&(partition, units)), "{partition:?} is not active");
        for unit in units.iter() {
            let last = &mut self.last[unit as usize];
            // What interrupted it began after it and has ended before it.
            let interrupted = last.extract_if(.., |(began, _)| *began >= start).count();
            assert!(interrupted == 0 || self.world.can_interrupt, "unit {unit} runs two at once");
            assert!(
                start < end && last.iter().all(|(_, ended)| *ended <= start),
                "{unit}: {last:?}"
            );
            *last = vec![(start, end)];
        }
        let mut models = BTreeSet::new();
        for &id in requests {
            let request = self.end(id, Fate::Answered);
            let belongs = self.world.can_run_together(request.model, model);
            assert!(request.arrived <= start && belongs, "{id:?} runs too early or with others");
            self.answers[request.model.index()].push((request.arrived, end));
            models.insert(request.model);
        }
        assert_eq!(models.len(), tenants as usize, "tenants are counted");
    }

    fn activated(&mut self, partition: PartitionId, units: UnitMask, _: Time) {
        let is_free = self.active.iter().all(|(_, others)| others.is_disjoint(units));
        assert!(is_free, "{partition:?} takes units of others");
        self.active.push((partition, units));
    }

    fn deactivated(&mut self, partition: PartitionId, _: UnitMask, _: Time) {
        self.active.retain(|(other, _)| *other != partition);
    }
}
