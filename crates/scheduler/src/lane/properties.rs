//! Lanes under random requests, beside a slow lane that follows the same rules in the plainest way.

use proptest::prelude::*;

use super::*;
use crate::identity::GroupId;
use crate::request::RequestId;
use crate::time::Span;

const MODELS: u32 = 4;

/// Models in groups and alone.
#[derive(Clone, Debug)]
struct Affine {
    /// By model: the time of a launch, of each item, and the largest batch; those of a group have its first member's.
    models: Vec<(f64, f64, u32)>,
    groups: Vec<Option<GroupId>>,
}

impl Affine {
    /// The first of a model's group, or the model itself.
    fn lead(&self, model: ModelId) -> usize {
        let group = self.groups[model.index()];
        let mates = self.groups.iter().position(|other| group.is_some() && *other == group);
        mates.unwrap_or(model.index())
    }

    fn run_together(&self, one: ModelId, other: ModelId) -> bool {
        self.lead(one) == self.lead(other)
    }
}

impl BatchLatency for Affine {
    fn of(&self, model: ModelId, batch: u32) -> Span {
        let (launch, item, _) = self.models[self.lead(model)];
        Span::from_us(launch + item * f64::from(batch))
    }

    fn largest_batch(&self, model: ModelId) -> u32 {
        self.models[self.lead(model)].2
    }
}

/// Batches as lists of requests; a change is tried by making it and looking at the end of every batch.
#[derive(Clone, Default)]
struct SlowLane(Vec<Vec<Request>>);

impl SlowLane {
    fn ends(&self, begin: Time, latency: &Affine) -> Vec<Time> {
        let mut at = begin;
        let ends = self.0.iter().map(|batch| {
            at = at + latency.of(batch[0].model, batch.len() as u32);
            at
        });
        ends.collect()
    }

    fn all_in_time(&self, begin: Time, latency: &Affine) -> bool {
        let ends = self.ends(begin, latency);
        let late =
            |(batch, end): (&Vec<Request>, &Time)| batch.iter().any(|one| one.deadline < *end);
        !self.0.iter().zip(&ends).any(late)
    }

    /// The changes that take in a request, in the order of preference.
    fn with(&self, request: Request, latency: &Affine) -> Vec<SlowLane> {
        let mut changes = Vec::new();
        let is_own = |batch: &Vec<Request>| latency.run_together(batch[0].model, request.model);
        let last_own = self.0.iter().rposition(is_own);
        if let Some(last) = last_own
            && self.0[last].len() < latency.largest_batch(request.model) as usize
        {
            let mut joined = self.clone();
            joined.0[last].push(request);
            changes.push(joined);
        }
        let due = |batch: &Vec<Request>| batch.iter().map(|one| one.deadline).min();
        let by_deadline = self.0.iter().rposition(|batch| due(batch) <= Some(request.deadline));
        let from = last_own.max(by_deadline).map_or(0, |index| index + 1);
        for position in from..=self.0.len() {
            let mut added = self.clone();
            added.0.insert(position, vec![request]);
            changes.push(added);
        }
        changes
    }

    fn admit(&mut self, request: Request, begin: Time, latency: &Affine) -> bool {
        let fits = self
            .with(request, latency)
            .into_iter()
            .find(|changed| changed.all_in_time(begin, latency));
        let is_accepted = fits.is_some();
        fits.into_iter().for_each(|changed| *self = changed);
        is_accepted
    }

    /// Takes the first batch, with more of its model or group while all stay in time.
    fn next(&mut self, now: Time, latency: &Affine) -> Option<Vec<Request>> {
        loop {
            let first = self.0.first()?;
            let model = first[0].model;
            let is_full = first.len() >= latency.largest_batch(model) as usize;
            let is_own = |index: &usize| latency.run_together(self.0[*index][0].model, model);
            let later = (1..self.0.len()).find(is_own);
            let mut grown = self.clone();
            if let (Some(later), false) = (later, is_full) {
                let moved = grown.0[later].remove(0);
                grown.0[0].push(moved);
                grown.0.retain(|batch| !batch.is_empty());
                if grown.all_in_time(now, latency) {
                    *self = grown;
                    continue;
                }
            }
            return Some(self.0.remove(0));
        }
    }
}

#[derive(Clone, Debug)]
struct Arrival {
    gap_us: u32,
    model: u32,
    slo_us: u32,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let arrival = (0u32..40, 0..MODELS, 20u32..400).prop_map(|(gap_us, model, slo_us)| Arrival {
        gap_us,
        model,
        slo_us,
    });
    prop::collection::vec(arrival, 1..120)
}

fn latencies() -> impl Strategy<Value = Affine> {
    let model = (1.0f64..40.0, 0.1f64..20.0, 1u32..9);
    let models = prop::collection::vec(model, MODELS as usize);
    let group = prop::option::of((0u32..2).prop_map(GroupId));
    let groups = prop::collection::vec(group, MODELS as usize);
    (models, groups).prop_map(|(models, groups)| Affine { models, groups })
}

/// What came of a run.
#[derive(Debug, Default, PartialEq)]
struct Played {
    accepted: Vec<u64>,
    batches: Vec<(Vec<Request>, Time)>,
    shed: Vec<u64>,
}

/// Plays arrivals; every batch takes `stray` times what was predicted. A slow lane runs beside where durations are exact.
fn play(arrivals: &[Arrival], latency: &Affine, stray: &[f64]) -> Played {
    play_beside(0, arrivals, latency, stray)
}

/// The same, where before each arrival a call of so many requests like it comes, of which those that are accepted are taken back.
fn play_beside(rows: u64, arrivals: &[Arrival], latency: &Affine, stray: &[f64]) -> Played {
    let model = |id: u32| LaneModel {
        model: ModelId(id),
        slo: None,
        weight: 1.0,
        priority: 0,
        group: latency.groups[id as usize],
    };
    let mut lane = Lane::new((0..MODELS).map(model), 40);
    let mut slow = stray.is_empty().then(SlowLane::default);
    let mut played = Played::default();
    let mut ends = None;
    let mut now;
    let mut coming = arrivals.iter().enumerate().peekable();
    let mut due = Time::START;
    loop {
        let next_arrival = coming.peek().map(|(_, one)| due + Span::from_us(f64::from(one.gap_us)));
        match (next_arrival, ends) {
            (None, None) => return played,
            (Some(arrival), end) if end.is_none_or(|end| arrival < end) => {
                let (id, one) = coming.next().unwrap();
                (now, due) = (arrival, arrival);
                let deadline = now + Span::from_us(f64::from(one.slo_us));
                let request = Request {
                    id: RequestId(id as u64),
                    model: ModelId(one.model),
                    arrived: now,
                    deadline,
                };
                let (before, mut accepted) = (lane.before(), Vec::new());
                for row in 0..rows {
                    let request = Request { id: RequestId(1000 + row), ..request };
                    let prospect = lane.prospect(&request, now, latency).unwrap();
                    if lane.judge(&request, &prospect).is_ok() {
                        lane.accept(request, prospect);
                        accepted.push(prospect);
                    }
                }
                lane.take_back(before, &accepted);
                let prospect = lane.prospect(&request, now, latency).unwrap();
                let has_room = lane.waiting() < 40;
                let is_accepted = lane.admit(request, prospect).is_ok();
                if let Some(slow) = &mut slow {
                    let slowly = has_room && slow.admit(request, ends.unwrap_or(now), latency);
                    assert_eq!(is_accepted, slowly, "request {id}");
                }
                played.accepted.extend(is_accepted.then_some(id as u64));
            }
            (_, Some(end)) => {
                now = end;
                ends = None;
                lane.set_busy_until(now);
            }
            (Some(_), None) => unreachable!("an arrival comes before nothing"),
        }
        if ends.is_none() && lane.waiting() > 0 {
            let batch = lane.next(now, latency, |late| played.shed.push(late.id.0));
            if let Some(slow) = &mut slow {
                let slowly = slow.next(now, latency);
                assert_eq!(batch.as_ref().map(|batch| &batch.requests), slowly.as_ref());
            }
            if let Some(batch) = batch {
                let factor = stray.get(played.batches.len() % stray.len().max(1)).unwrap_or(&1.0);
                let end = now + batch.expected * *factor;
                played.batches.push((batch.requests, end));
                ends = Some(end);
            }
        }
    }
}

fn check_order_and_limits(played: &Played, latency: &Affine) -> Result<(), TestCaseError> {
    let mut last = vec![None; MODELS as usize];
    let mut seen: Vec<u64> = played.shed.clone();
    for (requests, _) in &played.batches {
        let model = requests[0].model;
        let lead = latency.lead(model);
        prop_assert!(requests.len() <= latency.largest_batch(model) as usize);
        for request in requests {
            prop_assert_eq!(latency.lead(request.model), lead);
            prop_assert!(last[lead] < Some(request.id));
            last[lead] = Some(request.id);
            seen.push(request.id.0);
        }
    }
    seen.sort_unstable();
    prop_assert_eq!(&seen, &played.accepted, "every accepted request ends once");
    Ok(())
}

proptest! {
    #[test]
    fn where_durations_are_as_predicted_no_promise_is_broken(
        arrivals in arrivals(), latency in latencies(),
    ) {
        let played = play(&arrivals, &latency, &[]);
        check_order_and_limits(&played, &latency)?;
        prop_assert!(played.shed.is_empty());
        for (requests, end) in &played.batches {
            prop_assert!(requests.iter().all(|request| *end <= request.deadline));
        }
    }

    #[test]
    fn whatever_durations_are_requests_end_once_and_in_order(
        arrivals in arrivals(),
        latency in latencies(),
        stray in prop::collection::vec(0.3f64..3.0, 1..20),
    ) {
        let played = play(&arrivals, &latency, &stray);
        check_order_and_limits(&played, &latency)?;
    }

    #[test]
    fn calls_that_are_taken_back_leave_nothing_behind(
        rows in 1u64..8,
        arrivals in arrivals(),
        latency in latencies(),
        stray in prop::collection::vec(0.3f64..3.0, 1..20),
    ) {
        let beside = play_beside(rows, &arrivals, &latency, &stray);
        prop_assert_eq!(beside, play(&arrivals, &latency, &stray));
    }
}
