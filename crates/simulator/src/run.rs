//! One run: events are handed to the policy as they happen, its actions are carried out, and both are checked.

use std::collections::HashSet;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Normal};
use weft_scheduler::{
    Action, Event, LaunchId, LayoutFound, MemoryShare, MixId, ModelId, NoMix, PartitionId, Policy,
    Request, RequestId, Span, Time,
};

use crate::arrivals::Arrivals;
use crate::circumstances::{Circumstances, Drawn};
use crate::closed_loop::Clients;
use crate::durations::Durations;
use crate::event_queue::EventQueue;
use crate::lateness::TimeLeft;
use crate::load::Load;
use crate::mixes::Mixes;
use crate::observer::{Executed, Observer};
use crate::open_requests::OpenRequests;
use crate::outcome::{ModelOutcome, Outcome};
use crate::partitions::Partitions;
use crate::pause::Pause;
use crate::running::{Execution, Running};
use crate::violation::Violation;
use crate::world::World;

/// When nothing has come or run for so long, what still waits is lost.
const PATIENCE: Span = Span::from_nanos(100_000_000_000);

/// Durations never fall below this share of what the profile says, whatever the noise.
const LEAST_FACTOR: f64 = 0.2;

enum Happening {
    /// `None` where they could not be made ready.
    Ready(PartitionId, Option<Vec<ModelId>>),
    Planned(Box<LayoutFound>),
    Regulated(MixId, Result<f64, NoMix>),
    Wake,
    /// Something else wants the device.
    Wanted,
    /// It needs it no more.
    Resumed,
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
                Source::Clients(Clients::new(clients, think, seed, model))
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
    run_under(world, &Circumstances::default(), policy, observer)
}

/// The same under circumstances.
pub fn run_under<O: Observer>(
    world: &World,
    circumstances: &Circumstances,
    policy: &mut dyn Policy,
    observer: &mut O,
) -> Result<Outcome, Violation> {
    let mut run = Run::new(world, circumstances, policy, observer);
    run.prepare()?;
    run.begin();
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

/// What a policy launched, and where.
struct Launched {
    launch: LaunchId,
    partition: PartitionId,
    model: ModelId,
    mix: Option<MixId>,
}

struct Run<'a, O> {
    world: &'a World,
    policy: &'a mut dyn Policy,
    observer: &'a mut O,
    sources: Vec<Source>,
    /// By model; `None` for best effort.
    time_left: Vec<Option<TimeLeft>>,
    /// The next request of each model, or of each client; apart from all else, since nearly all that happens is this.
    arrivals: EventQueue<ModelId>,
    queue: EventQueue<Happening>,
    open: OpenRequests,
    partitions: Partitions,
    mixes: Mixes,
    running: Running,
    pause: Pause,
    circumstances: Drawn,
    durations: Durations,
    noise: Option<Normal<f64>>,
    random: SmallRng,
    next_request: u64,
    /// Before the first request.
    is_starting: bool,
    /// Requests that are served without a promise, and not answered yet.
    tried: HashSet<RequestId>,
    /// When the last thing happened.
    now: Time,
    /// When a request last came or ended.
    last_activity: Time,
    actions: Vec<Action>,
    outcome: Outcome,
}

impl<'a, O: Observer> Run<'a, O> {
    fn new(
        world: &'a World,
        circumstances: &Circumstances,
        policy: &'a mut dyn Policy,
        observer: &'a mut O,
    ) -> Self {
        let models = world.models.iter().zip(0..);
        let sources =
            models.clone().map(|(model, index)| Source::new(&model.load, world.seed, index));
        let time_left = models.map(|(model, index)| {
            Some(TimeLeft::new(model.slo?.latency, model.late, world.seed, index))
        });
        Self {
            world,
            policy,
            observer,
            sources: sources.collect(),
            time_left: time_left.collect(),
            arrivals: EventQueue::new(),
            queue: EventQueue::new(),
            open: OpenRequests::default(),
            partitions: Partitions::new(world.units, world.can_interrupt),
            mixes: Mixes::default(),
            running: Running::new(),
            pause: Pause::default(),
            circumstances: Drawn::new(*circumstances, world.seed),
            durations: Durations::new(world),
            noise: Normal::new(1.0, world.noise).ok().filter(|_| world.noise > 0.0),
            random: SmallRng::seed_from_u64(world.seed),
            next_request: 0,
            is_starting: true,
            tried: HashSet::new(),
            now: Time::START,
            last_activity: Time::START,
            actions: Vec::new(),
            outcome: Outcome {
                models: vec![ModelOutcome::default(); world.models.len()],
                ..Default::default()
            },
        }
    }

    /// The policy plans and prepares, as long as it takes, before the first request comes.
    fn prepare(&mut self) -> Result<(), Violation> {
        self.hand(Event::Started, Time::START)?;
        while self.queue.next_at() == Some(Time::START)
            && let Some((event, now)) = self.next()
        {
            self.hand(event, now)?;
        }
        self.is_starting = false;
        Ok(())
    }

    /// How long something takes that is made beside what is served.
    fn beside(&self, span: Span) -> Span {
        if self.is_starting { Span::ZERO } else { span }
    }

    /// What happens next. At one instant executions end first, and requests come last.
    fn next(&mut self) -> Option<(Event, Time)> {
        loop {
            if let Some(execution) = self.pause.release(self.now) {
                let launch = execution.launch;
                self.running.begin(execution, self.now);
                return Some((Event::Begun(launch), self.now));
            }
            let at = |next: Option<Time>| next.unwrap_or(Time::NEVER);
            let (end, other) = (at(self.running.next_end()), at(self.queue.next_at()));
            let arrival = at(self.arrivals.next_at());
            if end <= other.min(arrival)
                && let Some(launch) = self.finish(end)
            {
                self.now = end;
                return Some((Event::Finished(launch), end));
            }
            if arrival < other {
                self.now = arrival;
                return Some((self.arrive(arrival)?, arrival));
            }
            let (now, happening) = self.queue.take()?;
            self.now = now;
            match happening {
                Happening::Ready(partition, Some(models)) => {
                    if self.partitions.make_ready(partition, &models) {
                        return Some((Event::Prepared(partition), now));
                    }
                }
                Happening::Ready(partition, None) => {
                    return Some((Event::Unprepared(partition), now));
                }
                Happening::Planned(found) => return Some((Event::Planned(found), now)),
                Happening::Regulated(mix, share) => {
                    if self.mixes.make_ready(mix) {
                        return Some((Event::Regulated { mix, share }, now));
                    }
                }
                Happening::Wake => return Some((Event::Woken, now)),
                Happening::Wanted => {
                    let is_idle = self.open.len() == 0 && self.running.next_end().is_none();
                    if is_idle {
                        self.pause.begin();
                        self.queue.put(now + self.circumstances.pause(), Happening::Resumed);
                    } else {
                        self.put_pause();
                    }
                }
                Happening::Resumed => {
                    self.pause.end();
                    self.put_pause();
                }
            }
        }
    }

    /// Whether nothing more can come of it, though the policy may have asked to be woken.
    fn is_over(&self, now: Time) -> bool {
        let is_idle = self.arrivals.is_empty() && self.running.next_end().is_none();
        is_idle && (self.open.len() == 0 || now.since(self.last_activity) > PATIENCE)
    }

    /// Something else will want the device, as long as requests come.
    fn put_pause(&mut self) {
        let next = self.circumstances.next_pause(self.now);
        if let Some(at) = next.filter(|&at| at < self.end()) {
            self.queue.put(at, Happening::Wanted);
        }
    }

    /// Puts the first requests into the queue.
    fn begin(&mut self) {
        self.put_pause();
        for index in 0..self.sources.len() {
            let model = ModelId(index as u32);
            match &mut self.sources[index] {
                Source::Arrivals(_) => {
                    if let Some(at) = self.draw(model) {
                        self.put_arrival(model, at);
                    }
                }
                Source::Clients(clients) => {
                    for at in clients.begin() {
                        self.put_arrival(model, at);
                    }
                }
            }
        }
    }

    /// When the next request of a model comes that waits for nobody.
    fn draw(&mut self, model: ModelId) -> Option<Time> {
        let end = self.end();
        match &mut self.sources[model.index()] {
            Source::Arrivals(arrivals) => arrivals.next().filter(|&at| at < end),
            Source::Clients(_) => None,
        }
    }

    /// When requests cease to come.
    fn end(&self) -> Time {
        Time::START + self.world.length
    }

    /// As long as requests come.
    fn put_arrival(&mut self, model: ModelId, at: Time) {
        if at < self.end() {
            self.arrivals.put(at, model);
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

    /// The next request comes, perhaps of several rows, and the one that follows it is drawn.
    fn arrive(&mut self, now: Time) -> Option<Event> {
        let model = *self.arrivals.peek()?;
        match self.draw(model) {
            Some(at) => self.arrivals.replace_next(at, model),
            None => drop(self.arrivals.take()),
        }
        self.last_activity = now;
        let time_left = self.time_left[model.index()].as_mut();
        let deadline = time_left.map_or(Time::NEVER, |left| now + left.draw());
        let rows = match self.sources[model.index()] {
            Source::Arrivals(_) => self.circumstances.rows(),
            Source::Clients(_) => 1,
        };
        let mut row = || {
            let id = RequestId(self.next_request);
            self.next_request += 1;
            let request = Request { id, model, arrived: now, deadline };
            self.open.add(request);
            self.outcome.models[model.index()].arrived += 1;
            self.observer.arrived(&request);
            request
        };
        Some(match rows {
            1 => Event::Arrived(row()),
            _ => Event::ArrivedTogether((0..rows).map(|_| row()).collect()),
        })
    }

    /// The next execution ends, and its requests are answered.
    fn finish(&mut self, now: Time) -> Option<LaunchId> {
        let ended = self.running.end_next()?;
        let Execution { launch, partition, units, unit_count, model, started, paused, .. } = ended;
        let tenants = ended.tenants;
        let requests = ended.requests;
        self.partitions.release(partition);
        self.last_activity = now;
        let ran = now.since(started).saturating_sub(paused);
        self.outcome.busy_unit_seconds += ran.seconds() * f64::from(unit_count);
        self.outcome.length = now.since(Time::START);
        for &id in &requests {
            let request = self.open.take_running(id).expect("what was launched runs");
            let outcome = &mut self.outcome.models[request.model.index()];
            outcome.latencies.add(now.since(request.arrived));
            match now <= request.deadline {
                true => outcome.in_time += 1,
                false => outcome.late += 1,
            }
            if self.tried.remove(&id) && now > request.deadline {
                outcome.late_trials += 1;
            }
            self.release_client(request.model, true, now);
        }
        let requests = &requests;
        self.observer.executed(Executed {
            partition,
            units,
            model,
            tenants,
            requests,
            start: started,
            end: now,
        });
        Some(launch)
    }

    fn hand(&mut self, event: Event, now: Time) -> Result<(), Violation> {
        let mut actions = std::mem::take(&mut self.actions);
        let call: Vec<RequestId> = match &event {
            Event::ArrivedTogether(rows) => rows.iter().map(|row| row.id).collect(),
            _ => Vec::new(),
        };
        self.policy.react(event, now, &mut actions);
        let refused = actions.iter().filter(|action| match action {
            Action::Refuse { request, .. } => call.contains(request),
            _ => false,
        });
        let refused = refused.count();
        if refused > 0 && refused < call.len() {
            return Err(Violation::CallDivided(call[0]));
        }
        for action in actions.drain(..) {
            self.carry_out(action, now)?;
        }
        self.actions = actions;
        Ok(())
    }

    fn carry_out(&mut self, action: Action, now: Time) -> Result<(), Violation> {
        match action {
            Action::Prepare { partition, units, models } => {
                self.outcome.reconfigurations.prepared += 1;
                let each = self.world.preparation_per_model * models.len() as f64;
                let (takes, fails) = match self.is_starting {
                    true => (Span::ZERO, false),
                    false => self.circumstances.preparation(self.world.preparation + each),
                };
                let until = self.partitions.prepare(partition, units, now + takes)?;
                self.queue.put(until, Happening::Ready(partition, (!fails).then_some(models)));
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
            Action::Launch { launch, partition, model, mix, requests, expected: _ } => {
                let launched = Launched { launch, partition, model, mix };
                self.launch(launched, requests, now)?;
            }
            Action::Regulate { mix, units, models, .. } => {
                let known = self.world.mixes.iter().find(|known| known.models == models);
                let share = known.map(|known| self.world.share_of(known, units.len()));
                let share = share.ok_or(NoMix::GainsNothing);
                let takes = known.map_or(self.world.planning, |known| known.regulation);
                self.mixes.ask(mix, units, models);
                self.queue.put(now + takes, Happening::Regulated(mix, share));
            }
            Action::Forget(mix) => self.mixes.forget(mix),
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
            Action::Plan(task) => {
                let found = Box::new(task.solve());
                let until = now + self.beside(self.world.planning);
                self.queue.put(until, Happening::Planned(found));
            }
            Action::Try(request) => drop(self.tried.insert(request)),
            Action::Evicted { model, until } => {
                self.outcome.models[model.index()].evictions += 1;
                self.observer.evicted(model, now, until);
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
        launched: Launched,
        requests: Vec<RequestId>,
        now: Time,
    ) -> Result<(), Violation> {
        let Launched { launch, partition, model, mix } = launched;
        if requests.is_empty() {
            return Err(Violation::EmptyLaunch(launch));
        }
        let mut models = vec![model];
        let mut of_mix = Vec::new();
        for &id in &requests {
            let request = self.open.launch(id).ok_or(Violation::UnknownRequest(id))?;
            of_mix.extend(mix.map(|_| request.model));
            if mix.is_none() && !self.world.can_run_together(request.model, model) {
                return Err(Violation::WrongModel { request: id, launched: model });
            }
            if !models.contains(&request.model) {
                models.push(request.model);
            }
        }
        let units = self.partitions.occupy(partition, &models)?;
        let others = of_mix.iter().filter(|other| **other != model).count();
        let (batch, unit_count) = ((requests.len() - others) as u32, units.len());
        let profile = &self.world.models[model.index()].profile;
        let factor = match &self.noise {
            Some(noise) => noise.sample(&mut self.random).max(LEAST_FACTOR),
            None => 1.0,
        };
        let expected = self.durations.of(model, profile, batch, unit_count);
        let takes = match mix {
            None => expected.latency,
            Some(mix) => {
                self.outcome.mixed_launches += 1;
                self.mixes.launch(launch, mix, units, of_mix, &self.world.mixes)?
            }
        };
        let alone = takes * factor;
        let memory = MemoryShare::of(expected.dram_bytes, alone, self.world.bandwidth_bytes_per_s);
        let ends = now + alone;
        let execution = Execution {
            launch,
            partition,
            units,
            unit_count,
            model,
            tenants: models.len() as u32,
            requests,
            started: now,
            paused: Span::ZERO,
            ends,
            memory,
        };
        if let Some(execution) = self.pause.hold(execution) {
            self.running.begin(execution, now);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
