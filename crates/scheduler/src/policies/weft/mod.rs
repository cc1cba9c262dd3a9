//! Weft's own policy: partitions planned for the load as it is, with room for more; planned anew when the load changes and
//! it pays; and full partitions that send requests to others.

mod layout;
mod pool;
mod rates;

use crate::identity::ModelId;
use crate::plan::{DeviceFacts, ModelDemand, RoomyPlan, plan_with_room};
use crate::policy::{Action, Event, PartitionId, Policy};
use crate::served::ServedDevice;
use crate::serving::{Serving, ServingPartition};
use crate::time::{Span, Time};
use crate::unit_mask::UnitMask;

use pool::Pool;
use rates::ArrivalRate;

/// How often the load is looked at.
const LOOK_INTERVAL: Span = Span::from_nanos(10_000_000);

/// How often partitions are planned anew though nothing presses.
const REVIEW_INTERVAL: Span = Span::from_nanos(2_000_000_000);

/// The least time between plans that something presses for: a change is over before it is planned for.
const PRESSED_INTERVAL: Span = Span::from_nanos(60_000_000);

/// How many times as much room a new plan must leave to be worth a change, where the present one has too little, and where
/// it has enough.
const WORTH_WHEN_PRESSED: f64 = 1.05;
const WORTH_WHEN_NOT: f64 = 1.25;

/// Every model is planned for as if it was asked for at least this often.
const LEAST_PER_S: f64 = 1.0;

/// Serves by partition plans that follow the load.
pub struct Weft {
    device: ServedDevice,
    serving: Serving,
    rates: Vec<ArrivalRate>,
    pool: Pool,
    /// The partitions that serve.
    present: Vec<ServingPartition>,
    /// By model, what the present plan gives.
    given_per_s: Vec<f64>,
    next: Option<Transition>,
    /// What was asked for when partitions were last planned, by model, and when that was.
    planned_for_per_s: Vec<f64>,
    planned_at: Time,
    looked_at: Time,
}

/// Partitions that will serve once all are prepared.
struct Transition {
    partitions: Vec<ServingPartition>,
    given_per_s: Vec<f64>,
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
            pool: Pool::default(),
            present: Vec::new(),
            given_per_s: vec![0.0; device.models.len()],
            next: None,
            planned_for_per_s: vec![0.0; device.models.len()],
            planned_at: Time::START,
            looked_at: Time::START,
            device,
        }
    }

    /// Requests per second of each model with an objective, by now.
    fn asked_per_s(&mut self, now: Time) -> Vec<f64> {
        let models = self.rates.iter_mut().zip(&self.device.models);
        models
            .map(|(rate, model)| match model.slo {
                Some(_) => rate.per_s(now).max(LEAST_PER_S),
                None => 0.0,
            })
            .collect()
    }

    fn plan(&self, asked_per_s: &[f64]) -> RoomyPlan {
        let models = self.device.models.iter().zip(asked_per_s).enumerate();
        let demands: Vec<ModelDemand<'_>> = models
            .map(|(index, (model, &rate_per_s))| ModelDemand {
                name: String::new(),
                profile: &model.profile,
                slowdown: self.serving.slowdown(ModelId(index as u32)),
                slo: model.slo,
                rate_per_s,
                weight: model.weight,
                max_batch: model.largest_batch(),
            })
            .collect();
        let facts =
            DeviceFacts { units: self.device.units, memory_bytes: self.device.memory_bytes };
        plan_with_room(&demands, &facts)
    }

    /// Looks at the load, and plans anew where that is due and pays.
    fn look(&mut self, now: Time, actions: &mut Vec<Action>) {
        self.looked_at = now;
        if self.next.is_some() {
            return;
        }
        let asked_per_s = self.asked_per_s(now);
        let since_planned = now.since(self.planned_at);
        let room = room(&self.given_per_s, &asked_per_s);
        let is_pressed = room < 1.0;
        let has_changed = is_pressed && differs(&asked_per_s, &self.planned_for_per_s);
        let interval = if has_changed { PRESSED_INTERVAL } else { REVIEW_INTERVAL };
        if since_planned < interval {
            return;
        }
        self.planned_at = now;
        self.planned_for_per_s.clone_from(&asked_per_s);
        let plan = self.plan(&asked_per_s);
        let worth = if is_pressed { WORTH_WHEN_PRESSED } else { WORTH_WHEN_NOT };
        if plan.room > room * worth {
            self.prepare(&plan, now, actions);
        }
    }

    /// Makes the partitions of a plan ready, and changes over to them when they are.
    fn prepare(&mut self, roomy: &RoomyPlan, now: Time, actions: &mut Vec<Action>) {
        let wanted = layout::wanted(&roomy.plan, &self.device);
        let active: Vec<UnitMask> = self.present.iter().map(|partition| partition.units).collect();
        let places = layout::place(&wanted, &active, &self.pool, self.device.units);
        let mut partitions = Vec::with_capacity(wanted.len());
        let mut awaited = Vec::new();
        for (wanted, units) in wanted.into_iter().zip(places) {
            let models: Vec<ModelId> =
                wanted.residents.iter().chain(&wanted.guests).map(|(model, _)| *model).collect();
            let (id, preparation) = self.pool.want(units, &models);
            if let Some(preparation) = preparation {
                actions.push(preparation);
                awaited.push(id);
            }
            let layout::Wanted { residents, guests, .. } = wanted;
            partitions.push(ServingPartition { id, units, residents, guests });
        }
        let models = 0..self.device.models.len() as u32;
        let given_per_s = models.map(|model| roomy.plan.given_per_s(ModelId(model))).collect();
        self.next = Some(Transition { partitions, given_per_s, awaited });
        self.change_over(now, actions);
    }

    fn change_over(&mut self, now: Time, actions: &mut Vec<Action>) {
        let is_ready = |next: &mut Transition| next.awaited.is_empty();
        let Some(next) = self.next.take_if(is_ready) else { return };
        self.serving.switch(&next.partitions, now, actions);
        (self.present, self.given_per_s) = (next.partitions, next.given_per_s);
        let (present, serving) = (&self.present, &self.serving);
        let in_use = |id| present.iter().any(|partition| partition.id == id) || serving.uses(id);
        self.pool.trim(in_use, actions);
    }
}

/// The least that any model is given of what it asks for.
fn room(given_per_s: &[f64], asked_per_s: &[f64]) -> f64 {
    let models = given_per_s.iter().zip(asked_per_s).filter(|(_, asked)| **asked > 0.0);
    models.map(|(given, asked)| given / asked).fold(f64::INFINITY, f64::min)
}

/// Whether any rate differs by so much that another plan may come of it.
fn differs(asked_per_s: &[f64], before_per_s: &[f64]) -> bool {
    let total: f64 = asked_per_s.iter().sum();
    let mut models = asked_per_s.iter().zip(before_per_s);
    models.any(|(asked, before)| (asked - before).abs() > 0.2 * before + 0.02 * total)
}

impl Policy for Weft {
    fn name(&self) -> &'static str {
        "weft"
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        match event {
            Event::Started => {
                let asked_per_s = self.asked_per_s(now);
                let plan = self.plan(&asked_per_s);
                self.prepare(&plan, now, actions);
            }
            Event::Arrived(request) => {
                self.rates[request.model.index()].arrive(now);
                // A refusal is among the actions.
                let _ = self.serving.arrive(request, now, actions);
                if now.since(self.looked_at) >= LOOK_INTERVAL {
                    self.look(now, actions);
                }
            }
            Event::Finished(launch) => self.serving.finish(launch, now, actions),
            Event::Prepared(id) => {
                if let Some(next) = &mut self.next {
                    next.awaited.retain(|awaited| *awaited != id);
                }
                self.change_over(now, actions);
            }
            Event::Woken => {}
        }
    }
}
