//! Weft's own policy: a pool of partitions laid out for the load as it is, and laid out anew when the load changes and it
//! pays.

mod mixing;
#[cfg(test)]
mod mixing_tests;
mod placing;
mod pool;
mod rates;
mod rounds;

use crate::identity::ModelId;
use crate::latency::PredictionError;
use crate::layout::{Layout, LayoutFound, LayoutTask};
use crate::learned::Learned;
use crate::policy::{Action, Event, PartitionId, Policy};
use crate::request::Request;
use crate::served::ServedDevice;
use crate::serving::{Serving, ServingPartition};
use crate::time::{Span, Time};
use crate::unit_mask::UnitMask;

use mixing::{Look, Mixing};
use pool::Pool;
use rates::ArrivalRate;

/// How often the load is looked at.
const LOOK_INTERVAL: Span = Span::from_nanos(10_000_000);

/// How long a change is watched before a layout is searched for, so that it is one for what the load has become.
const SETTLING: Span = Span::from_nanos(60_000_000);

/// A rate has changed if it differs by so much, as a share of what it was and of all requests together.
const CHANGE_OF_OWN: f64 = 0.2;
const CHANGE_OF_ALL: f64 = 0.02;

/// The least time between two searches while all is well, or while requests are lost though nothing has changed: more may
/// be known about latencies.
const REVIEW_INTERVAL: Span = Span::from_nanos(5_000_000_000);

/// The share of lost requests, of late, at which something must be done.
const PRESSING_LOSS: f64 = 0.01;

/// How much of the distance to the latest share of lost requests is gone with each look: a few hundred milliseconds count.
const LOSS_WEIGHT: f64 = 0.04;

/// A new layout must lose so much less than the present one to be worth a change, as a share of all requests: under the
/// load as it is, or under more than that.
const WORTH_NOW: f64 = 0.003;
const WORTH_LATER: f64 = 0.1;

/// Serves by layouts that follow the load.
pub struct Weft {
    device: ServedDevice,
    serving: Serving,
    rates: Vec<ArrivalRate>,
    mixing: Mixing,
    pool: Pool,
    /// The layout that serves, and its partitions.
    layout: Option<Layout>,
    /// That of the policy in whose place this one comes, until it has one.
    inherited: Option<Layout>,
    present: Vec<ServingPartition>,
    next: Option<Transition>,
    /// Requests per second of each model when a layout was last searched for, and when that was.
    planned_for_per_s: Vec<f64>,
    planned_at: Time,
    is_planning: bool,
    /// A layout is to be searched for as soon as that may be, whatever the load.
    is_review_due: bool,
    /// Since when the load is another one.
    changed_at: Option<Time>,
    looked_at: Time,
    /// Since the last look.
    arrived: u32,
    refused: u32,
    /// The share of lost requests, of late.
    lost: f64,
}

/// Partitions that will serve once all are prepared.
struct Transition {
    layout: Layout,
    partitions: Vec<ServingPartition>,
    awaited: Vec<PartitionId>,
}

impl Weft {
    /// On a device with its models.
    pub fn new(device: ServedDevice) -> Self {
        let rates = device.models.iter();
        let rates = rates.map(|model| ArrivalRate::expected(model.expected_per_s, Time::START));
        Self {
            serving: Serving::new(device.clone()),
            rates: rates.collect(),
            mixing: Mixing::default(),
            pool: Pool::default(),
            layout: None,
            inherited: None,
            present: Vec::new(),
            next: None,
            planned_for_per_s: vec![0.0; device.models.len()],
            planned_at: Time::START,
            is_planning: false,
            is_review_due: false,
            changed_at: None,
            looked_at: Time::START,
            arrived: 0,
            refused: 0,
            lost: 0.0,
            device,
        }
    }

    /// The same, where members of groups that hold the others up are left among them.
    #[must_use]
    pub fn keeping_stragglers(mut self) -> Self {
        self.serving.keep_stragglers();
        self
    }

    fn arrive(&mut self, requests: &[Request], now: Time, actions: &mut Vec<Action>) {
        for request in requests {
            self.rates[request.model.index()].arrive(now);
            self.mixing.arrive(request.model, now);
        }
        self.arrived += requests.len() as u32;
        self.refused += self.serving.arrive(requests, now, actions);
        if now.since(self.looked_at) >= LOOK_INTERVAL {
            self.look(now, actions);
        }
    }

    /// Looks at the load, and has a layout searched for where that is due: soon where the load has changed and requests are
    /// lost, else now and then.
    fn look(&mut self, now: Time, actions: &mut Vec<Action>) {
        let lost = f64::from(self.refused) / f64::from(self.arrived.max(1));
        self.lost += LOSS_WEIGHT * (lost - self.lost);
        (self.looked_at, self.arrived, self.refused) = (now, 0, 0);
        let per_s: Vec<f64> = self.rates.iter_mut().map(|rate| rate.per_s(now)).collect();
        let has_changed = differs(&per_s, &self.planned_for_per_s);
        self.changed_at = has_changed.then_some(self.changed_at.unwrap_or(now));
        let is_pressed = self.lost > PRESSING_LOSS;
        let look = Look { device: &self.device, present: &self.present, is_pressed, now };
        self.is_review_due |= self.mixing.look(&look, &mut self.serving, actions);
        let has_settled = self.changed_at.is_some_and(|at| now.since(at) >= SETTLING);
        let is_due = now.since(self.planned_at) >= REVIEW_INTERVAL;
        let is_wanted = self.is_review_due
            || (has_settled && is_pressed)
            || (is_due && (has_settled || is_pressed));
        if is_wanted && !self.is_planning && self.next.is_none() {
            self.plan(per_s, now, actions);
        }
    }

    fn plan(&mut self, per_s: Vec<f64>, now: Time, actions: &mut Vec<Action>) {
        (self.planned_at, self.is_planning, self.is_review_due) = (now, true, false);
        self.planned_for_per_s.clone_from(&per_s);
        let models = || (0..self.device.models.len() as u32).map(ModelId);
        let latency = self.serving.latency();
        actions.push(Action::Plan(Box::new(LayoutTask {
            device: self.device.clone(),
            per_s,
            corrections: models().map(|model| latency.correction(model)).collect(),
            spreads: models().map(|model| latency.spread(model)).collect(),
            present: self.layout.as_ref().or(self.inherited.as_ref()).cloned(),
            rounds: self.mixing.load(now),
        })));
    }

    /// Changes to what was found, if that is worth it.
    fn consider(&mut self, found: &LayoutFound, now: Time, actions: &mut Vec<Action>) {
        self.is_planning = false;
        let is_worth_it = found.present_lost.is_none_or(|present| {
            let now = present.now - found.lost.now;
            let later = present.later - found.lost.later;
            now > WORTH_NOW || (now > -WORTH_NOW && later > WORTH_LATER)
        });
        let inherited = self.inherited.take().filter(|_| !is_worth_it);
        if self.layout.is_none() {
            self.prepare(inherited.unwrap_or_else(|| found.layout.clone()), now, actions);
        } else if is_worth_it && self.layout.as_ref() != Some(&found.layout) {
            self.prepare(found.layout.clone(), now, actions);
        }
    }

    /// Goes on with what there is; where that is nothing, all units are one partition.
    fn do_without_plan(&mut self, now: Time, actions: &mut Vec<Action>) {
        self.is_planning = false;
        if self.layout.is_none() {
            let whole = || Layout::new(vec![self.device.units]);
            let layout = self.inherited.take().unwrap_or_else(whole);
            self.prepare(layout, now, actions);
        }
    }

    /// Makes the partitions of a layout ready, and changes over to them when they are.
    fn prepare(&mut self, layout: Layout, now: Time, actions: &mut Vec<Action>) {
        let seats = layout.seats(&self.device);
        let active: Vec<UnitMask> = self.present.iter().map(|partition| partition.units).collect();
        let places = placing::place(layout.sizes(), &active, &self.pool, self.device.units);
        let mut partitions = Vec::with_capacity(seats.len());
        let mut awaited = Vec::new();
        // What is too small for any model stays idle.
        let useful = seats.into_iter().zip(places).filter(|(models, _)| !models.is_empty());
        for (models, units) in useful {
            let ids: Vec<ModelId> = models.iter().map(|(model, _)| *model).collect();
            let (id, preparation) = self.pool.want(units, &ids);
            actions.extend(preparation);
            if self.pool.is_pending(id) {
                awaited.push(id);
            }
            partitions.push(ServingPartition { id, units, models });
        }
        self.next = Some(Transition { layout, partitions, awaited });
        self.change_over(now, actions);
    }

    fn change_over(&mut self, now: Time, actions: &mut Vec<Action>) {
        let is_ready = |next: &mut Transition| next.awaited.is_empty();
        let Some(next) = self.next.take_if(is_ready) else { return };
        self.serving.switch(&next.partitions, now, actions);
        (self.layout, self.present) = (Some(next.layout), next.partitions);
        self.mixing.begin(&self.present, &mut self.serving);
        let serving = &self.serving;
        self.pool.trim(|id| serving.uses(id), actions);
    }
}

/// Whether any rate differs by so much that another layout may come of it.
fn differs(per_s: &[f64], before_per_s: &[f64]) -> bool {
    let total: f64 = per_s.iter().sum();
    let mut models = per_s.iter().zip(before_per_s);
    models
        .any(|(now, before)| (now - before).abs() > CHANGE_OF_OWN * before + CHANGE_OF_ALL * total)
}

impl Policy for Weft {
    fn name(&self) -> &'static str {
        "weft"
    }

    fn prediction_error(&self) -> Option<PredictionError> {
        self.serving.latency().error_overall()
    }

    fn is_evicted(&self, model: ModelId, now: Time) -> bool {
        self.serving.is_evicted(model, now)
    }

    fn learned(&self) -> Learned {
        Learned { layout: self.layout.clone(), models: self.serving.learned() }
    }

    fn start_from(&mut self, learned: Learned) {
        self.inherited = learned.layout;
        self.serving.start_from(learned.models);
    }

    fn rate_per_s(&self, model: ModelId, now: Time) -> Option<f64> {
        let mut rate = *self.rates.get(model.index())?;
        Some(rate.per_s(now))
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        match event {
            Event::Started => {
                let expected = self.device.models.iter().map(|model| model.expected_per_s);
                self.plan(expected.collect(), now, actions);
            }
            Event::Arrived(request) => self.arrive(&[request], now, actions),
            Event::ArrivedTogether(requests) => self.arrive(&requests, now, actions),
            Event::Begun(launch) => self.serving.begin(launch, now),
            Event::Thinned(launch) => self.serving.thin(launch),
            Event::Finished(launch) => self.serving.finish(launch, now, actions),
            Event::Planned(found) => self.consider(&found, now, actions),
            Event::Unplanned => self.do_without_plan(now, actions),
            Event::Prepared(id) => {
                self.pool.confirm(id);
                if let Some(next) = &mut self.next {
                    next.awaited.retain(|awaited| self.pool.is_pending(*awaited));
                }
                self.change_over(now, actions);
            }
            Event::Unprepared(id) => {
                self.pool.withdraw(id);
                // The present layout goes on; the next change of load brings another search.
                self.next.take_if(|next| next.awaited.contains(&id));
            }
            Event::Regulated { mix, share } => {
                let (present, serving) = (&self.present, &mut self.serving);
                self.is_review_due |= self.mixing.regulated(mix, share, present, now, serving);
            }
            Event::Woken => self.serving.wake(now, actions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Lost;
    use crate::policies::random_devices::device_with;
    use crate::request::RequestId;

    /// The layout that a policy begins with, which may know that of the one before it.
    fn first_layout(device: ServedDevice, before: Option<Vec<u32>>) -> Vec<u32> {
        let mut policy = Weft::new(device);
        if let Some(before) = before {
            policy.start_from(Learned { layout: Some(Layout::new(before)), models: Vec::new() });
        }
        assert_eq!(policy.layout, None);
        let mut actions = Vec::new();
        policy.react(Event::Started, Time::START, &mut actions);
        let planned = actions.drain(..).find_map(|action| match action {
            Action::Plan(task) => Some(Box::new(task.solve())),
            _ => None,
        });
        let planned = planned.expect("it plans first");
        policy.react(Event::Planned(planned), Time::START, &mut actions);
        let wanted: Vec<PartitionId> = actions.iter().filter_map(prepared).collect();
        for partition in wanted {
            policy.react(Event::Prepared(partition), Time::START, &mut actions);
        }
        policy.layout.expect("all is prepared").sizes().to_vec()
    }

    fn prepared(action: &Action) -> Option<PartitionId> {
        match action {
            Action::Prepare { partition, .. } => Some(*partition),
            _ => None,
        }
    }

    /// Finds that a layout is better than the present one; says which partitions are to be prepared for it, and which begin.
    fn changes(policy: &mut Weft, sizes: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let layout = Layout::new(sizes.to_vec());
        let (none, all) = (Lost { now: 0.0, later: 0.0 }, Lost { now: 1.0, later: 1.0 });
        let found = LayoutFound { layout, room: 1.0, lost: none, present_lost: Some(all) };
        told(policy, Event::Planned(Box::new(found)))
    }

    fn told(policy: &mut Weft, event: Event) -> (Vec<u32>, Vec<u32>) {
        let mut actions = Vec::new();
        policy.react(event, Time::START, &mut actions);
        let begins = |action: &Action| match action {
            Action::Activate(partition) => Some(partition.0),
            _ => None,
        };
        let wanted = actions.iter().filter_map(prepared).map(|partition| partition.0).collect();
        let mut begin: Vec<u32> = actions.iter().filter_map(begins).collect();
        begin.sort_unstable();
        (wanted, begin)
    }

    #[test]
    fn no_partition_begins_before_all_that_was_asked_for_it_is_ready() {
        let mut policy = Weft::new(device_with(&[(100.0, 50.0); 2], 4));
        let nothing = || (vec![], vec![]);
        let prepared = |id| Event::Prepared(PartitionId(id));
        told(&mut policy, Event::Started);
        assert_eq!(changes(&mut policy, &[4]), (vec![0], vec![]));
        assert_eq!(told(&mut policy, prepared(0)), (vec![], vec![0]));
        assert_eq!(changes(&mut policy, &[2, 2]), (vec![1, 2], vec![]));
        assert_eq!(told(&mut policy, Event::Unprepared(PartitionId(1))), nothing());
        assert_eq!(changes(&mut policy, &[2, 2]), (vec![1], vec![]), "the other goes on");
        assert_eq!(told(&mut policy, prepared(1)), nothing(), "the other is not ready");
        assert_eq!(told(&mut policy, prepared(2)), (vec![], vec![1, 2]));
    }

    #[test]
    fn what_fails_ends_the_change_that_waits_for_it_and_no_other() {
        let mut policy = Weft::new(device_with(&[(100.0, 50.0); 2], 4));
        told(&mut policy, Event::Started);
        changes(&mut policy, &[4]);
        told(&mut policy, Event::Prepared(PartitionId(0)));
        assert_eq!(changes(&mut policy, &[2, 2]), (vec![1, 2], vec![]));
        told(&mut policy, Event::Unprepared(PartitionId(1)));
        assert_eq!(changes(&mut policy, &[3, 1]), (vec![3, 4], vec![]));
        told(&mut policy, Event::Unprepared(PartitionId(2)));
        told(&mut policy, Event::Prepared(PartitionId(3)));
        let (_, begin) = told(&mut policy, Event::Prepared(PartitionId(4)));
        assert_eq!(begin, [3, 4]);
    }

    #[test]
    fn a_policy_knows_about_models_what_the_one_before_it_has_learned() {
        let device = |models| device_with(&vec![(100.0, 50.0); models], 4);
        let mut before = Weft::new(device(2));
        told(&mut before, Event::Started);
        changes(&mut before, &[4]);
        told(&mut before, Event::Prepared(PartitionId(0)));
        let mut now = Time::START;
        for id in 0..120 {
            let (model, takes_us) = [(ModelId(0), 1200.0), (ModelId(1), 700.0)][id as usize % 2];
            now = now + Span::from_us(5000.0);
            let deadline = now + Span::from_us(50_000.0);
            let request = Request { id: RequestId(id), model, arrived: now, deadline };
            let mut actions = Vec::new();
            before.react(Event::Arrived(request), now, &mut actions);
            let launched = actions.iter().find_map(|action| match action {
                Action::Launch { launch, .. } => Some(*launch),
                _ => None,
            });
            let end = now + Span::from_us(takes_us);
            before.react(Event::Finished(launched.expect("all is free")), end, &mut actions);
        }
        let corrections = |policy: &Weft, models: &[u32]| -> Vec<f64> {
            let of = |&model: &u32| policy.serving.latency().correction(ModelId(model));
            models.iter().map(of).collect()
        };
        let known = corrections(&before, &[0, 1]);
        assert!(known[0] > 1.2 && known[1] < 0.9, "{known:?}");
        let Learned { layout, mut models } = before.learned();
        assert_eq!(layout, Some(Layout::new(vec![4])));
        // They have other places now, and there is one more.
        models.swap(0, 1);
        models.push(None);
        let mut after = Weft::new(device(3));
        after.start_from(Learned { layout, models });
        assert_eq!(corrections(&after, &[1, 0, 2]), [known[0], known[1], 1.0]);
    }

    #[test]
    fn a_policy_begins_with_the_layout_before_it_unless_another_is_worth_it() {
        let light = || device_with(&[(1.0, 50.0)], 4);
        assert_eq!(first_layout(light(), None), [4]);
        assert_eq!(first_layout(light(), Some(vec![2, 2])), [2, 2]);
        // Single items take as long on one unit as on all, so that one partition cannot carry this.
        let heavy = || device_with(&[(2500.0, 4.0)], 4);
        let found = first_layout(heavy(), None);
        assert!(found.len() > 1, "{found:?}");
        assert!(first_layout(heavy(), Some(vec![4])).len() > 1);
    }
}
