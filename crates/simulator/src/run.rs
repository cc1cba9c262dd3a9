//! One run: events are handed to the policy as they happen, its actions are carried out, and both are checked.

use std::collections::HashMap;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Normal};
use weft_scheduler::{
    Action, Event, LaunchId, ModelId, PartitionId, Policy, Request, RequestId, Span, Time, UnitMask,
};

use crate::arrivals::Arrivals;
use crate::event_queue::EventQueue;
use crate::open_requests::OpenRequests;
use crate::outcome::{ModelOutcome, Outcome};
use crate::world::World;

/// Durations never fall below this share of what the profile says, whatever the noise.
const LEAST_FACTOR: f64 = 0.2;

/// A policy that did what it must not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Violation {
    UnitsBeyondDevice(PartitionId),
    UnitsOversubscribed(PartitionId),
    UnitsChanged(PartitionId),
    PartitionNotActive(PartitionId),
    PartitionActive(PartitionId),
    ModelNotReady { partition: PartitionId, model: ModelId },
    PartitionBusy(PartitionId),
    UnknownPartition(PartitionId),
    UnknownRequest(RequestId),
    EmptyLaunch(LaunchId),
    WrongModel { request: RequestId, launched: ModelId },
    RequestsLost(usize),
}

struct PartitionState {
    units: UnitMask,
    is_active: bool,
    ready: Vec<ModelId>,
    running: Option<LaunchId>,
}

struct Running {
    partition: PartitionId,
    model: ModelId,
    requests: Vec<RequestId>,
    duration: Span,
}

enum Happening {
    Arrival(ModelId),
    Ready(PartitionId, Vec<ModelId>),
    Policy(Event),
}

/// Runs a policy in a world until every request is done with.
pub fn run(world: &World, policy: &mut dyn Policy) -> Result<Outcome, Violation> {
    let mut run = Run::new(world);
    run.start(policy)?;
    while let Some((now, happening)) = run.queue.take() {
        let event = match happening {
            Happening::Policy(event) => event,
            Happening::Arrival(model) => Event::Arrived(run.arrive(model, now)),
            Happening::Ready(partition, models) => {
                let Some(state) = run.partitions.get_mut(&partition) else { continue };
                state.ready.extend(models);
                Event::Prepared(partition)
            }
        };
        if let Event::Finished(launch) = event {
            run.finish(launch, now);
        }
        run.hand(event, now, policy)?;
    }
    match run.open.len() {
        0 => Ok(run.outcome),
        lost => Err(Violation::RequestsLost(lost)),
    }
}

struct Run<'a> {
    world: &'a World,
    arrivals: Vec<Arrivals>,
    queue: EventQueue<Happening>,
    open: OpenRequests,
    partitions: HashMap<PartitionId, PartitionState>,
    running: HashMap<LaunchId, Running>,
    noise: Option<Normal<f64>>,
    random: SmallRng,
    next_request: u64,
    actions: Vec<Action>,
    outcome: Outcome,
}

impl<'a> Run<'a> {
    fn new(world: &'a World) -> Self {
        let arrivals = world
            .models
            .iter()
            .enumerate()
            .map(|(index, model)| Arrivals::new(model.load, world.seed, index as u32));
        Self {
            world,
            arrivals: arrivals.collect(),
            queue: EventQueue::new(),
            open: OpenRequests::default(),
            partitions: HashMap::new(),
            running: HashMap::new(),
            noise: Normal::new(1.0, world.noise).ok().filter(|_| world.noise > 0.0),
            random: SmallRng::seed_from_u64(world.seed),
            next_request: 0,
            actions: Vec::new(),
            outcome: Outcome {
                models: vec![ModelOutcome::default(); world.models.len()],
                ..Default::default()
            },
        }
    }

    fn start(&mut self, policy: &mut dyn Policy) -> Result<(), Violation> {
        for index in 0..self.world.models.len() {
            self.draw(ModelId(index as u32));
        }
        self.hand(Event::Started, Time::START, policy)
    }

    /// Puts the model's next request into the queue, as long as requests come. They begin when the device is prepared.
    fn draw(&mut self, model: ModelId) {
        let end = Time::START + self.world.length;
        if let Some(at) = self.arrivals[model.index()].next().filter(|&at| at < end) {
            self.queue.put(at + self.world.preparation, Happening::Arrival(model));
        }
    }

    fn arrive(&mut self, model: ModelId, now: Time) -> Request {
        self.draw(model);
        let id = RequestId(self.next_request);
        self.next_request += 1;
        let slo = self.world.models[model.index()].slo;
        let deadline = slo.map_or(Time::NEVER, |slo| now + slo.latency);
        let request = Request { id, model, arrived: now, deadline };
        self.open.add(request);
        self.outcome.models[model.index()].arrived += 1;
        request
    }

    fn finish(&mut self, launch: LaunchId, now: Time) {
        let Some(running) = self.running.remove(&launch) else { return };
        let units = match self.partitions.get_mut(&running.partition) {
            Some(partition) => {
                partition.running = None;
                partition.units.len()
            }
            None => 0,
        };
        self.outcome.busy_unit_seconds += running.duration.seconds() * f64::from(units);
        let outcome = &mut self.outcome.models[running.model.index()];
        for id in running.requests {
            let Some(request) = self.open.take(id) else { continue };
            outcome.latencies.add(now.since(request.arrived));
            match now <= request.deadline {
                true => outcome.in_time += 1,
                false => outcome.late += 1,
            }
        }
        self.outcome.length = now.since(Time::START);
    }

    fn hand(&mut self, event: Event, now: Time, policy: &mut dyn Policy) -> Result<(), Violation> {
        let mut actions = std::mem::take(&mut self.actions);
        policy.react(event, now, &mut actions);
        for action in actions.drain(..) {
            self.carry_out(action, now)?;
        }
        self.actions = actions;
        Ok(())
    }

    fn carry_out(&mut self, action: Action, now: Time) -> Result<(), Violation> {
        match action {
            Action::Prepare { partition, units, models } => {
                if units.iter().any(|unit| unit >= self.world.units) {
                    return Err(Violation::UnitsBeyondDevice(partition));
                }
                let state = self.partitions.entry(partition).or_insert_with(|| PartitionState {
                    units,
                    is_active: false,
                    ready: Vec::new(),
                    running: None,
                });
                if state.units != units {
                    return Err(Violation::UnitsChanged(partition));
                }
                let ready = Happening::Ready(partition, models);
                self.queue.put(now + self.world.preparation, ready);
            }
            Action::Activate(partition) => {
                let units = self.idle(partition)?.units;
                let mut active = self.partitions.values().filter(|state| state.is_active);
                if active.any(|state| !state.units.is_disjoint(units)) {
                    return Err(Violation::UnitsOversubscribed(partition));
                }
                self.idle(partition)?.is_active = true;
            }
            Action::Deactivate(partition) => {
                let state = self.active(partition)?;
                if state.running.is_some() {
                    return Err(Violation::PartitionBusy(partition));
                }
                state.is_active = false;
            }
            Action::Discard(partition) => {
                self.idle(partition)?;
                self.partitions.remove(&partition);
            }
            Action::Launch { launch, partition, model, requests, expected: _ } => {
                self.launch(launch, partition, model, requests, now)?;
            }
            Action::Refuse { request, why: _ } => {
                self.close(request, |outcome| outcome.refused += 1)?
            }
            Action::Shed(request) => self.close(request, |outcome| outcome.shed += 1)?,
            Action::WakeAt(at) => self.queue.put(at.max(now), Happening::Policy(Event::Woken)),
        }
        Ok(())
    }

    /// A partition that is not active.
    fn idle(&mut self, id: PartitionId) -> Result<&mut PartitionState, Violation> {
        let state = self.partitions.get_mut(&id).ok_or(Violation::UnknownPartition(id))?;
        if state.is_active { Err(Violation::PartitionActive(id)) } else { Ok(state) }
    }

    /// A partition that is active.
    fn active(&mut self, id: PartitionId) -> Result<&mut PartitionState, Violation> {
        let state = self.partitions.get_mut(&id).ok_or(Violation::UnknownPartition(id))?;
        if state.is_active { Ok(state) } else { Err(Violation::PartitionNotActive(id)) }
    }

    fn close(
        &mut self,
        id: RequestId,
        count: impl FnOnce(&mut ModelOutcome),
    ) -> Result<(), Violation> {
        let request = self.open.take(id).ok_or(Violation::UnknownRequest(id))?;
        count(&mut self.outcome.models[request.model.index()]);
        Ok(())
    }

    fn launch(
        &mut self,
        launch: LaunchId,
        partition: PartitionId,
        model: ModelId,
        requests: Vec<RequestId>,
        now: Time,
    ) -> Result<(), Violation> {
        if requests.is_empty() {
            return Err(Violation::EmptyLaunch(launch));
        }
        for id in &requests {
            let request = self.open.get(*id).ok_or(Violation::UnknownRequest(*id))?;
            if request.model != model {
                return Err(Violation::WrongModel { request: *id, launched: model });
            }
        }
        let state = self.active(partition)?;
        if !state.ready.contains(&model) {
            return Err(Violation::ModelNotReady { partition, model });
        }
        if state.running.replace(launch).is_some() {
            return Err(Violation::PartitionBusy(partition));
        }
        let units = state.units.len();
        let profile = &self.world.models[model.index()].profile;
        let factor = match &self.noise {
            Some(noise) => noise.sample(&mut self.random).max(LEAST_FACTOR),
            None => 1.0,
        };
        let duration = profile.latency(requests.len() as u32, units) * factor;
        self.running.insert(launch, Running { partition, model, requests, duration });
        self.queue.put(now + duration, Happening::Policy(Event::Finished(launch)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use weft_scheduler::plan::Slo;
    use weft_scheduler::policies::{EqualPartitions, TimeSharing};
    use weft_scheduler::{Profile, ProfilePoint};

    use super::*;
    use crate::arrivals::Load;
    use crate::world::SimulatedModel;

    fn profile(us: f64) -> Arc<Profile> {
        let grid =
            [1u32, 8].into_iter().flat_map(|batch| [1u32, 4].map(move |units| (batch, units)));
        let point = |(batch, units): (u32, u32)| {
            let us = us * f64::from(batch).sqrt() * (0.3 + 0.7 / f64::from(units));
            ProfilePoint { batch, units, latency: Span::from_us(us), dram_bytes: 0.0 }
        };
        Arc::new(Profile::new(&grid.map(point).collect::<Vec<_>>(), 0).unwrap())
    }

    fn world(rate_per_s: f64, slo_us: f64, noise: f64, seed: u64) -> World {
        let model = |name: &str, us: f64| SimulatedModel {
            name: name.into(),
            profile: profile(us),
            load: Load::Poisson { rate_per_s },
            slo: Some(Slo { percentile: 0.99, latency: Span::from_us(slo_us) }),
            weight: 1.0,
            priority: 0,
        };
        World {
            models: vec![model("fast", 200.0), model("slow", 900.0)],
            units: 4,
            bandwidth_bytes_per_s: 1e12,
            memory_bytes: 1 << 30,
            preparation: Span::from_us(100.0),
            noise,
            length: Span::from_s(2.0),
            seed,
        }
    }

    fn time_sharing(world: &World) -> TimeSharing {
        TimeSharing::new(world.served_device())
    }

    #[test]
    fn light_load_is_served_in_time() {
        let world = world(100.0, 5000.0, 0.0, 1);
        let outcome = run(&world, &mut time_sharing(&world)).unwrap();
        assert!(outcome.attainment() > 0.999, "{}", outcome.attainment());
        assert!(outcome.busy_unit_seconds > 0.0);
    }

    #[test]
    fn partitions_keep_a_slow_neighbour_from_delaying_the_fast() {
        // Tight enough that waiting for the slow model once is too long.
        let slow = world(300.0, 700.0, 0.0, 4);
        let mut partitioned = EqualPartitions::new(slow.served_device());
        let apart = run(&slow, &mut partitioned).unwrap();
        let together = run(&slow, &mut time_sharing(&slow)).unwrap();
        assert!(apart.models[0].attainment() > 0.95, "{}", apart.models[0].attainment());
        assert!(apart.models[0].attainment() > together.models[0].attainment());
    }

    #[test]
    fn a_run_can_be_repeated() {
        let world = world(3000.0, 3000.0, 0.1, 5);
        let once = run(&world, &mut time_sharing(&world)).unwrap();
        assert_eq!(once, run(&world, &mut time_sharing(&world)).unwrap());
        let other = World { seed: 6, ..world.clone() };
        assert_ne!(once, run(&other, &mut time_sharing(&other)).unwrap());
    }

    #[test]
    fn overload_is_refused_at_the_door_and_what_is_accepted_is_in_time() {
        let world = world(20_000.0, 3000.0, 0.0, 2);
        let outcome = run(&world, &mut time_sharing(&world)).unwrap();
        let refused: u64 = outcome.models.iter().map(|model| model.refused).sum();
        let late: u64 = outcome.models.iter().map(|model| model.late).sum();
        assert!(refused > 10_000);
        assert_eq!(late, 0);
    }

    /// Launches nothing, ever.
    struct Idle;

    impl Policy for Idle {
        fn name(&self) -> &'static str {
            "idle"
        }

        fn react(&mut self, _: Event, _: Time, _: &mut Vec<Action>) {}
    }

    /// Asks for more units than there are.
    struct Greedy;

    impl Policy for Greedy {
        fn name(&self) -> &'static str {
            "greedy"
        }

        fn react(&mut self, event: Event, _: Time, actions: &mut Vec<Action>) {
            if event == Event::Started {
                actions.push(Action::Prepare {
                    partition: PartitionId(0),
                    units: UnitMask::range(0, 99),
                    models: Vec::new(),
                });
            }
        }
    }

    #[test]
    fn policies_that_lose_requests_or_oversubscribe_units_are_found_out() {
        let world = world(100.0, 5000.0, 0.0, 1);
        assert!(matches!(run(&world, &mut Idle), Err(Violation::RequestsLost(_))));
        let beyond = Violation::UnitsBeyondDevice(PartitionId(0));
        assert_eq!(run(&world, &mut Greedy), Err(beyond));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn every_request_ends_once(
            rate in 1.0f64..8000.0, slo in 100.0f64..20_000.0, noise in 0.0f64..0.5, seed: u64,
        ) {
            let world = World { length: Span::from_s(0.3), ..world(rate, slo, noise, seed) };
            let outcome = run(&world, &mut time_sharing(&world)).unwrap();
            for model in &outcome.models {
                let ended = model.in_time + model.late + model.refused + model.shed;
                prop_assert_eq!(ended, model.arrived);
                prop_assert_eq!(model.latencies.count(), model.in_time + model.late);
            }
        }
    }
}
