//! Partitions that never change.

use crate::identity::ModelId;
use crate::latency::PredictionError;
use crate::policy::{Action, Event, Policy};
use crate::served::ServedDevice;
use crate::serving::{Serving, ServingPartition};
use crate::time::Time;

/// A policy that serves on a set of partitions that is made once.
pub struct FixedServing {
    name: &'static str,
    serving: Serving,
    /// Those that are not prepared yet.
    partitions: Vec<ServingPartition>,
    prepared: Vec<ServingPartition>,
}

impl FixedServing {
    /// Partitions of these sizes, with the models of each.
    pub fn new(
        name: &'static str,
        device: ServedDevice,
        partitions: Vec<(u32, Vec<(ModelId, u32)>)>,
    ) -> Self {
        Self {
            name,
            serving: Serving::new(device),
            partitions: ServingPartition::side_by_side(partitions),
            prepared: Vec::new(),
        }
    }
}

impl Policy for FixedServing {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prediction_error(&self) -> Option<PredictionError> {
        self.serving.latency().error_overall()
    }

    fn is_evicted(&self, model: ModelId, now: Time) -> bool {
        self.serving.is_evicted(model, now)
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        match event {
            Event::Started => {
                actions.extend(self.partitions.iter().map(ServingPartition::preparation));
            }
            Event::Prepared(id) => {
                let ready = self.partitions.extract_if(.., |partition| partition.id == id);
                self.prepared.extend(ready);
                self.serving.switch(&self.prepared, now, actions);
            }
            // Refusals are among the actions.
            Event::Arrived(request) => {
                self.serving.arrive(&[request], now, actions);
            }
            Event::ArrivedTogether(requests) => {
                self.serving.arrive(&requests, now, actions);
            }
            Event::Begun(launch) => self.serving.begin(launch, now),
            Event::Thinned(launch) => self.serving.thin(launch),
            Event::Finished(launch) => self.serving.finish(launch, now, actions),
            Event::Unprepared(_)
            | Event::Planned(_)
            | Event::Unplanned
            | Event::Regulated { .. }
            | Event::Woken => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::policy::PartitionId;
    use crate::profile::{Profile, ProfilePoint};
    use crate::request::{Request, RequestId};
    use crate::served::ServedModel;
    use crate::time::Span;

    fn policy() -> FixedServing {
        policy_where(false)
    }

    fn policy_where(can_interrupt: bool) -> FixedServing {
        let point = |batch| ProfilePoint {
            batch,
            units: 1,
            latency: Span::from_us(100.0 + 10.0 * f64::from(batch)),
            dram_bytes: 0.0,
        };
        let model = ServedModel {
            profile: Arc::new(Profile::new(&[point(1), point(8)], 1).unwrap()),
            slo: None,
            expected_per_s: 1.0,
            weight: 1.0,
            priority: 0,
            group: None,
        };
        let device = ServedDevice {
            models: vec![model],
            units: 1,
            bandwidth_bytes_per_s: 1e9,
            memory_bytes: 1 << 20,
            can_interrupt,
        };
        FixedServing::new("one", device, vec![(1, vec![(ModelId(0), 8)])])
    }

    #[test]
    fn requests_that_came_together_run_together() {
        let mut policy = policy();
        let mut actions = Vec::new();
        policy.react(Event::Started, Time::START, &mut actions);
        policy.react(Event::Prepared(PartitionId(0)), Time::START, &mut actions);
        let deadlines = [Time::NEVER, Time::START + Span::from_us(1e6)];
        for (round, deadline) in deadlines.into_iter().enumerate() {
            actions.clear();
            let request = |id| Request {
                id: RequestId(id + 10 * round as u64),
                model: ModelId(0),
                arrived: Time::START,
                deadline,
            };
            let requests: Vec<Request> = (0..5).map(request).collect();
            let ids: Vec<RequestId> = requests.iter().map(|request| request.id).collect();
            policy.react(Event::ArrivedTogether(requests), Time::START, &mut actions);
            let launched = actions.iter().find_map(|action| match action {
                Action::Launch { requests, launch, .. } => Some((requests.clone(), *launch)),
                _ => None,
            });
            let (launched, launch) = launched.expect("the partition is free");
            assert_eq!(launched, ids);
            policy.react(Event::Finished(launch), Time::START, &mut actions);
        }
    }

    #[test]
    fn what_holds_a_launch_up_is_not_held_against_its_model() {
        let at = |us| Time::START + Span::from_us(us);
        let mut policy = policy();
        let mut actions = Vec::new();
        policy.react(Event::Started, Time::START, &mut actions);
        policy.react(Event::Prepared(PartitionId(0)), Time::START, &mut actions);
        actions.clear();
        let (id, model, deadline) = (RequestId(1), ModelId(0), at(5000.0));
        let request = Request { id, model, arrived: Time::START, deadline };
        policy.react(Event::Arrived(request), Time::START, &mut actions);
        let [Action::Launch { launch, .. }] = actions[..] else { panic!("{actions:?}") };
        actions.clear();
        policy.react(Event::Begun(launch), at(700.0), &mut actions);
        assert_eq!((actions.len(), policy.serving.latency().correction(model)), (0, 1.0));
        policy.react(Event::Finished(launch), at(810.0), &mut actions);
        assert_eq!(policy.serving.latency().correction(model), 1.0);
    }

    #[test]
    fn what_holds_up_both_a_launch_and_what_interrupts_it_is_held_against_neither() {
        let at = |us| Time::START + Span::from_us(us);
        let mut policy = policy_where(true);
        let mut actions = Vec::new();
        policy.react(Event::Started, Time::START, &mut actions);
        policy.react(Event::Prepared(PartitionId(0)), Time::START, &mut actions);
        let mut launched = |policy: &mut FixedServing, id, now, deadline| {
            actions.clear();
            let (id, model) = (RequestId(id), ModelId(0));
            let request = Request { id, model, arrived: now, deadline };
            policy.react(Event::Arrived(request), now, &mut actions);
            let [Action::Launch { launch, .. }] = actions[..] else { panic!("{actions:?}") };
            launch
        };
        let long = launched(&mut policy, 1, at(0.0), at(5000.0));
        let urgent = launched(&mut policy, 2, at(20.0), at(200.0));
        let mut actions = Vec::new();
        policy.react(Event::Begun(long), at(700.0), &mut actions);
        policy.react(Event::Begun(urgent), at(700.0), &mut actions);
        policy.react(Event::Finished(urgent), at(810.0), &mut actions);
        // All of it is left, not what would be if it had run before it was interrupted.
        let free_at = policy.serving.partitions[0].lane.free_at(at(810.0));
        assert_eq!((free_at, actions.len()), (at(920.0), 0));
        policy.react(Event::Finished(long), at(920.0), &mut actions);
        assert_eq!(policy.serving.latency().correction(ModelId(0)), 1.0);
    }

    #[test]
    fn launches_of_which_only_a_part_runs_teach_nothing() {
        let mut policy = policy();
        let (mut actions, mut now) = (Vec::new(), Time::START);
        policy.react(Event::Started, now, &mut actions);
        policy.react(Event::Prepared(PartitionId(0)), now, &mut actions);
        let learned = |policy: &FixedServing| {
            let certainty = policy.serving.conditions.certainties[0].deviations();
            (policy.serving.latency().correction(ModelId(0)), certainty)
        };
        let before = learned(&policy);
        for id in 0..30 {
            now = now + Span::from_us(1000.0);
            actions.clear();
            let deadline = now + Span::from_us(500.0);
            let request = Request { id: RequestId(id), model: ModelId(0), arrived: now, deadline };
            policy.react(Event::Arrived(request), now, &mut actions);
            let [Action::Launch { launch, .. }] = actions[..] else { panic!("{actions:?}") };
            actions.clear();
            policy.react(Event::Thinned(launch), now, &mut actions);
            assert_eq!(actions, []);
            policy.react(Event::Finished(launch), now + Span::from_us(1.0), &mut actions);
        }
        assert_eq!(learned(&policy), before);
    }

    #[test]
    fn a_call_is_taken_in_whole_or_not_at_all() {
        let mut policy = policy();
        let mut actions = Vec::new();
        policy.react(Event::Started, Time::START, &mut actions);
        policy.react(Event::Prepared(PartitionId(0)), Time::START, &mut actions);
        // A batch of eight takes 180 us, so that eight rows are in time and nine are not.
        let call = |ids: std::ops::Range<u64>| -> Vec<Request> {
            let deadline = Time::START + Span::from_us(200.0);
            let request = |id| Request {
                id: RequestId(id),
                model: ModelId(0),
                arrived: Time::START,
                deadline,
            };
            ids.map(request).collect()
        };
        actions.clear();
        policy.react(Event::ArrivedTogether(call(0..9)), Time::START, &mut actions);
        let refused = |action: &Action| match action {
            Action::Refuse { request, .. } => request.0,
            other => panic!("{other:?}"),
        };
        assert_eq!(actions.iter().map(refused).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
        assert_eq!(policy.serving.partitions[0].lane.waiting(), 0);
        actions.clear();
        policy.react(Event::ArrivedTogether(call(10..18)), Time::START, &mut actions);
        let [Action::Launch { requests, .. }] = &actions[..] else { panic!("{actions:?}") };
        assert_eq!(requests.len(), 8);
    }

    #[test]
    fn a_model_that_was_slow_for_a_while_is_not_shut_out_for_ever() {
        let mut policy = policy();
        let (mut actions, mut now) = (Vec::new(), Time::START);
        policy.react(Event::Started, now, &mut actions);
        policy.react(Event::Prepared(PartitionId(0)), now, &mut actions);
        let mut come = |id: u64, time_us: f64, takes_us: f64| {
            now = now + Span::from_us(10_000.0);
            let deadline = now + Span::from_us(time_us);
            let request = Request { id: RequestId(id), model: ModelId(0), arrived: now, deadline };
            actions.clear();
            policy.react(Event::Arrived(request), now, &mut actions);
            let launch = actions.iter().find_map(|action| match action {
                Action::Launch { launch, .. } => Some(*launch),
                _ => None,
            });
            let Some(launch) = launch else { return false };
            now = now + Span::from_us(takes_us);
            policy.react(Event::Finished(launch), now, &mut actions);
            true
        };
        // One takes 110 us, and for a while three times that.
        assert!((0..60).all(|id| come(id, 5000.0, 330.0)));
        assert!(!come(60, 150.0, 110.0));
        // Some are tried, and in the end two in a row are served.
        let mut was_served = false;
        let again = (61..2000).find(|&id| {
            let is_served = come(id, 150.0, 110.0);
            std::mem::replace(&mut was_served, is_served) && is_served
        });
        assert!(again.is_some_and(|id| id < 1000), "{again:?}");
    }
}
