//! One run: events are handed to the policy as they happen, its actions are carried out, and both are checked.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Normal};
use weft_scheduler::{
    Action, Event, LaunchId, MemoryShare, ModelId, PartitionId, Policy, Request, RequestId, Span,
    Time,
};

use crate::arrivals::{Arrivals, random};
use crate::closed_loop::Clients;
use crate::durations::Durations;
use crate::event_queue::EventQueue;
use crate::load::Load;
use crate::observer::{Executed, Observer};
use crate::open_requests::OpenRequests;
use crate::outcome::{ModelOutcome, Outcome};
use crate::partitions::Partitions;
use crate::running::{Execution, Running};
use crate::violation::Violation;
use crate::world::World;

/// When nothing has come or run for so long, what still waits is lost.
const PATIENCE: Span = Span::from_nanos(100_000_000_000);

/// Durations never fall below this share of what the profile says, whatever the noise.
const LEAST_FACTOR: f64 = 0.2;

enum Happening {
    Arrival(ModelId),
    Ready(PartitionId, Vec<ModelId>),
    Wake,
}

/// Where requests of one model come from.
enum Source {
    Arrivals(Arrivals),
    Clients(Clients),
}

impl Source {
    fn new(load: &Load, seed: u64, model: u32) -> Self {
        match *load {
            Load::ClosedLoop { clients, think } => {
                Source::Clients(Clients::new(clients, think, random(seed, model)))
            }
            _ => Source::Arrivals(Arrivals::new(load, seed, model)),
        }
    }
}

/// Runs a policy in a world until every request is done with.
pub fn run(world: &World, policy: &mut dyn Policy) -> Result<Outcome, Violation> {
    run_observed(world, policy, &mut ())
}

/// The same, while somebody looks on.
pub fn run_observed<O: Observer>(
    world: &World,
    policy: &mut dyn Policy,
    observer: &mut O,
) -> Result<Outcome, Violation> {
    let mut run = Run::new(world, policy, observer);
    run.begin();
    run.hand(Event::Started, Time::START)?;
    while let Some((event, now)) = run.next() {
        run.hand(event, now)?;
        if run.is_over(now) {
            break;
        }
    }
    match run.open.len() {
        0 => Ok(run.outcome),
        lost => Err(Violation::RequestsLost(lost)),
    }
}

struct Run<'a, O> {
    world: &'a World,
    policy: &'a mut dyn Policy,
    observer: &'a mut O,
    sources: Vec<Source>,
    queue: EventQueue<Happening>,
    open: OpenRequests,
    partitions: Partitions,
    running: Running,
    durations: Durations,
    noise: Option<Normal<f64>>,
    random: SmallRng,
    next_request: u64,
    arrivals_to_come: usize,
    /// When a request last came or ended.
    last_activity: Time,
    actions: Vec<Action>,
    outcome: Outcome,
}

impl<'a, O: Observer> Run<'a, O> {
    fn new(world: &'a World, policy: &'a mut dyn Policy, observer: &'a mut O) -> Self {
        let models = world.models.iter().zip(0..);
        let sources = models.map(|(model, index)| Source::new(&model.load, world.seed, index));
        Self {
            world,
            policy,
            observer,
            sources: sources.collect(),
            queue: EventQueue::new(),
            open: OpenRequests::default(),
            partitions: Partitions::new(world.units),
            running: Running::new(),
            durations: Durations::new(world),
            noise: Normal::new(1.0, world.noise).ok().filter(|_| world.noise > 0.0),
            random: SmallRng::seed_from_u64(world.seed),
            next_request: 0,
            arrivals_to_come: 0,
            last_activity: Time::START,
            actions: Vec::new(),
            outcome: Outcome {
                models: vec![ModelOutcome::default(); world.models.len()],
                ..Default::default()
            },
        }
    }

    /// What happens next; where an execution ends at the very instant of something else, that comes first.
    fn next(&mut self) -> Option<(Event, Time)> {
        loop {
            if let Some(end) = self.running.next_end()
                && self.queue.next_at().is_none_or(|at| end <= at)
            {
                return self.finish(end).map(|launch| (Event::Finished(launch), end));
            }
            let (now, happening) = self.queue.take()?;
            match happening {
                Happening::Arrival(model) => {
                    return Some((Event::Arrived(self.arrive(model, now)), now));
                }
                Happening::Ready(partition, models) => {
                    if self.partitions.make_ready(partition, &models) {
                        return Some((Event::Prepared(partition), now));
                    }
                }
                Happening::Wake => return Some((Event::Woken, now)),
            }
        }
    }

    /// Whether nothing more can come of it, though the policy may have asked to be woken.
    fn is_over(&self, now: Time) -> bool {
        let is_idle = self.arrivals_to_come == 0 && self.running.next_end().is_none();
        is_idle && (self.open.len() == 0 || now.since(self.last_activity) > PATIENCE)
    }

    /// Puts the first requests into the queue. They begin when the device is prepared.
    fn begin(&mut self) {
        for index in 0..self.sources.len() {
            let model = ModelId(index as u32);
            match &mut self.sources[index] {
                Source::Arrivals(_) => self.draw(model),
                Source::Clients(clients) => {
                    for at in clients.begin() {
                        self.put_arrival(model, at + self.world.preparation);
                    }
                }
            }
        }
    }

    /// Puts the next request of a model that does not wait for clients into the queue.
    fn draw(&mut self, model: ModelId) {
        if let Source::Arrivals(arrivals) = &mut self.sources[model.index()]
            && let Some(at) = arrivals.next()
        {
            self.put_arrival(model, at + self.world.preparation);
        }
    }

    /// As long as requests come.
    fn put_arrival(&mut self, model: ModelId, at: Time) {
        if at < Time::START + self.world.preparation + self.world.length {
            self.queue.put(at, Happening::Arrival(model));
            self.arrivals_to_come += 1;
        }
    }

    /// A client's request has ended, with or without an answer, and the client goes on.
    fn release_client(&mut self, model: ModelId, is_answered: bool, now: Time) {
        if let Source::Clients(clients) = &mut self.sources[model.index()] {
            let at = match is_answered {
                true => clients.after_answer(now),
                false => clients.after_refusal(now),
            };
            self.put_arrival(model, at);
        }
    }

    fn arrive(&mut self, model: ModelId, now: Time) -> Request {
        self.arrivals_to_come -= 1;
        self.last_activity = now;
        self.draw(model);
        let id = RequestId(self.next_request);
        self.next_request += 1;
        let slo = self.world.models[model.index()].slo;
        let deadline = slo.map_or(Time::NEVER, |slo| now + slo.latency);
        let request = Request { id, model, arrived: now, deadline };
        self.open.add(request);
        self.outcome.models[model.index()].arrived += 1;
        self.observer.arrived(&request);
        request
    }

    /// The next execution ends, and its requests are answered.
    fn finish(&mut self, now: Time) -> Option<LaunchId> {
        let Execution { launch, partition, units, unit_count, model, requests, started, .. } =
            self.running.end_next()?;
        self.partitions.release(partition);
        self.last_activity = now;
        self.outcome.busy_unit_seconds += now.since(started).seconds() * f64::from(unit_count);
        self.outcome.length = now.since(Time::START);
        let outcome = &mut self.outcome.models[model.index()];
        for &id in &requests {
            let request = self.open.take_running(id).expect("what was launched runs");
            outcome.latencies.add(now.since(request.arrived));
            match now <= request.deadline {
                true => outcome.in_time += 1,
                false => outcome.late += 1,
            }
        }
        for _ in &requests {
            self.release_client(model, true, now);
        }
        let requests = &requests;
        self.observer.executed(Executed {
            partition,
            units,
            model,
            requests,
            start: started,
            end: now,
        });
        Some(launch)
    }

    fn hand(&mut self, event: Event, now: Time) -> Result<(), Violation> {
        let mut actions = std::mem::take(&mut self.actions);
        self.policy.react(event, now, &mut actions);
        for action in actions.drain(..) {
            self.carry_out(action, now)?;
        }
        self.actions = actions;
        Ok(())
    }

    fn carry_out(&mut self, action: Action, now: Time) -> Result<(), Violation> {
        match action {
            Action::Prepare { partition, units, models } => {
                self.partitions.prepare(partition, units)?;
                self.outcome.reconfigurations.prepared += 1;
                let until = now + self.world.preparation;
                self.queue.put(until, Happening::Ready(partition, models));
                self.observer.preparing(partition, units, now, until);
            }
            Action::Activate(partition) => {
                let units = self.partitions.activate(partition)?;
                self.outcome.reconfigurations.activated += 1;
                self.observer.activated(partition, units, now);
            }
            Action::Deactivate(partition) => {
                let units = self.partitions.deactivate(partition)?;
                self.outcome.reconfigurations.deactivated += 1;
                self.observer.deactivated(partition, units, now);
            }
            Action::Discard(partition) => self.partitions.discard(partition)?,
            Action::Launch { launch, partition, model, requests, expected: _ } => {
                self.launch(launch, partition, model, requests, now)?;
            }
            Action::Refuse { request, why } => {
                let request = self.close(request, now)?;
                self.outcome.models[request.model.index()].refused += 1;
                self.observer.refused(&request, why, now);
            }
            Action::Shed(request) => {
                let request = self.close(request, now)?;
                self.outcome.models[request.model.index()].shed += 1;
                self.observer.shed(&request, now);
            }
            Action::WakeAt(at) => self.queue.put(at.max(now), Happening::Wake),
        }
        Ok(())
    }

    /// Takes out a request that ends without an answer.
    fn close(&mut self, id: RequestId, now: Time) -> Result<Request, Violation> {
        let request = self.open.take_waiting(id).ok_or(Violation::UnknownRequest(id))?;
        self.release_client(request.model, false, now);
        Ok(request)
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
        for &id in &requests {
            let request = self.open.launch(id).ok_or(Violation::UnknownRequest(id))?;
            if request.model != model {
                return Err(Violation::WrongModel { request: id, launched: model });
            }
        }
        let units = self.partitions.occupy(partition, model)?;
        let (batch, unit_count) = (requests.len() as u32, units.len());
        let profile = &self.world.models[model.index()].profile;
        let factor = match &self.noise {
            Some(noise) => noise.sample(&mut self.random).max(LEAST_FACTOR),
            None => 1.0,
        };
        let expected = self.durations.of(model, profile, batch, unit_count);
        let alone = expected.latency * factor;
        let memory = MemoryShare::of(expected.dram_bytes, alone, self.world.bandwidth_bytes_per_s);
        let ends = now + alone;
        let execution = Execution {
            launch,
            partition,
            units,
            unit_count,
            model,
            requests,
            started: now,
            ends,
            memory,
        };
        self.running.begin(execution, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use weft_scheduler::plan::Slo;
    use weft_scheduler::policies::{EqualPartitions, TimeSharing};
    use weft_scheduler::{Profile, ProfilePoint, Refusal, UnitMask};

    use super::*;
    use crate::load::Load;
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
        let slow = world(300.0, 500.0, 0.0, 4);
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

    #[test]
    fn clients_wait_for_their_answers() {
        let mut world = world(0.0, 5000.0, 0.0, 1);
        world.models[0].slo = None;
        // Alone on the whole device, one item takes 95 us.
        let think = Span::from_us(905.0);
        world.models[0].load = Load::ClosedLoop { clients: 1, think };
        world.models[1].load = Load::ClosedLoop { clients: 0, think };
        let one = run(&world, &mut time_sharing(&world)).unwrap();
        assert_eq!(one.models[1].arrived, 0);
        assert!((1800..2200).contains(&one.models[0].arrived), "{}", one.models[0].arrived);
        assert_eq!(one.models[0].latency(1.0), Span::from_us(95.0));
        // Without thinking, four clients are always being served, in batches.
        world.models[0].load = Load::ClosedLoop { clients: 4, think: Span::ZERO };
        let busy = run(&world, &mut time_sharing(&world)).unwrap();
        assert!(busy.busy_unit_seconds > 0.99 * 4.0 * busy.length.seconds() - 0.01);
        // Impossible deadlines are refused, and clients ask again after a while.
        world.models[0].slo = Some(Slo { percentile: 0.99, latency: Span::from_us(10.0) });
        let refused = run(&world, &mut time_sharing(&world)).unwrap().models[0].clone();
        assert_eq!(refused.refused, refused.arrived);
        assert!((7900..8100).contains(&refused.arrived), "{}", refused.arrived);
    }

    /// Remembers how long launches took, and their batches.
    #[derive(Default)]
    struct Durations(Vec<(usize, Span)>);

    impl Observer for Durations {
        fn executed(&mut self, executed: Executed<'_>) {
            self.0.push((executed.requests.len(), executed.end.since(executed.start)));
        }
    }

    #[test]
    fn partitions_share_the_memory_and_nothing_else() {
        let play = |dram_bytes: f64| {
            let mut world = world(1000.0, 1e6, 0.0, 3);
            let point =
                |batch| ProfilePoint { batch, units: 2, latency: Span::from_us(900.0), dram_bytes };
            let profile = Arc::new(Profile::new(&[point(1), point(8)], 0).unwrap());
            world.models.iter_mut().for_each(|model| model.profile = profile.clone());
            let mut durations = Durations::default();
            let mut policy = EqualPartitions::new(world.served_device());
            run_observed(&world, &mut policy, &mut durations).unwrap();
            durations.0.iter().map(|(_, duration)| duration.us()).collect::<Vec<f64>>()
        };
        assert!(play(0.0).iter().all(|&us| us == 900.0));
        // Each asks for two thirds of the bandwidth: 600 of 900 us.
        let shared = play(600e-6 * 1e12);
        assert!(shared.iter().all(|&us| (900.0..1200.01).contains(&us)), "{shared:?}");
        let mean = shared.iter().sum::<f64>() / shared.len() as f64;
        assert!(mean > 1100.0, "{mean}");
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

    /// Wakes up forever, and does nothing else.
    struct Sleepless;

    impl Policy for Sleepless {
        fn name(&self) -> &'static str {
            "sleepless"
        }

        fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
            match event {
                Event::Arrived(request) if request.id.0 % 2 == 0 => {
                    actions.push(Action::Refuse { request: request.id, why: Refusal::NotServed });
                }
                Event::Started | Event::Woken => {
                    actions.push(Action::WakeAt(now + Span::from_s(1.0)))
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_run_ends_though_the_policy_goes_on() {
        let mut world = world(100.0, 5000.0, 0.0, 1);
        let lost = run(&world, &mut Sleepless);
        assert!(matches!(lost, Err(Violation::RequestsLost(150..250))), "{lost:?}");
        world.length = Span::ZERO;
        assert!(run(&world, &mut Sleepless).is_ok());
    }

    /// Launches every request on two partitions.
    struct Twice;

    impl Policy for Twice {
        fn name(&self) -> &'static str {
            "twice"
        }

        fn react(&mut self, event: Event, _: Time, actions: &mut Vec<Action>) {
            match event {
                Event::Started => actions.extend([0, 1].map(|id| Action::Prepare {
                    partition: PartitionId(id),
                    units: UnitMask::range(id, 1),
                    models: vec![ModelId(0), ModelId(1)],
                })),
                Event::Prepared(partition) => actions.push(Action::Activate(partition)),
                Event::Arrived(request) => actions.extend([0, 1].map(|id| Action::Launch {
                    launch: LaunchId(u64::from(id)),
                    partition: PartitionId(id),
                    model: request.model,
                    requests: vec![request.id],
                    expected: Span::ZERO,
                })),
                _ => {}
            }
        }
    }

    #[test]
    fn a_request_runs_once() {
        let world = world(100.0, 5000.0, 0.0, 1);
        assert_eq!(run(&world, &mut Twice), Err(Violation::UnknownRequest(RequestId(0))));
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
