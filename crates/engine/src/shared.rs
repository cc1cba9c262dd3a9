//! What the threads of an engine share: the services, under one lock that is held for as long as a decision takes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use weft_device::DeviceError;
use weft_scheduler::{LayoutTask, NoMix, Refusal, Time};

use crate::alarm::Alarm;
use crate::beside;
use crate::call::{Call, Piece, Reply, Submission, lock};
use crate::clock::Clock;
use crate::error::InferError;
use crate::mixing::{Mixer, ReadyMix};
use crate::observer::Observer;
use crate::preparing::Preparer;
use crate::service::{Effects, Generation, Message, Service};

/// How many brief batches a thread that brings a request runs at most before it goes on.
const MOST_BRIEF: usize = 4;

/// How long who waits for an idle moment looks away at most.
const LONGEST_WAIT: Duration = Duration::from_millis(20);

pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) preparer: Preparer,
    pub(crate) alarm: Alarm,
    pub(crate) mixer: Arc<Mixer>,
    services: Mutex<Services>,
    /// Something has ended that somebody may wait for.
    ended: Condvar,
    itself: Weak<Shared>,
}

#[derive(Default)]
pub(crate) struct Services {
    /// One for each layer that has models.
    pub(crate) current: Vec<Service>,
    /// Those that are being made ready to be the current ones.
    pub(crate) next: Vec<Service>,
    /// Launches of services before the current ones that have not ended.
    draining: usize,
    /// Nothing is launched while a piece of other work uses the device.
    is_paused: bool,
    is_stopping: bool,
}

impl Services {
    fn of(&mut self, generation: Generation) -> Option<&mut Service> {
        let mut services = self.current.iter_mut().chain(&mut self.next);
        services.find(|service| service.generation == generation)
    }

    /// The tightest of what was promised.
    pub(crate) fn tightest_objective(&self) -> Option<Duration> {
        let models = self.current.iter().flat_map(|service| service.models.iter());
        let objectives = models.filter_map(|model| model.served.slo);
        objectives.map(|slo| Duration::from_nanos(slo.latency.nanos())).min()
    }

    fn is_idle(&self) -> bool {
        self.draining == 0 && !self.is_paused && self.current.iter().all(Service::is_idle)
    }
}

impl Shared {
    pub(crate) fn new(
        observer: Arc<dyn Observer>,
        preparer: Preparer,
        alarm: Alarm,
        mixer: Mixer,
    ) -> Arc<Self> {
        Arc::new_cyclic(|itself| Self {
            clock: Clock::new(),
            observer,
            preparer,
            alarm,
            mixer: Arc::new(mixer),
            services: Mutex::default(),
            ended: Condvar::new(),
            itself: itself.clone(),
        })
    }

    pub(crate) fn services(&self) -> MutexGuard<'_, Services> {
        lock(&self.services)
    }

    /// Takes in a request. The call can be cancelled for as long as it waits.
    pub(crate) fn submit(&self, submission: Submission, reply: Reply) -> Arc<Call> {
        let (model, rows) = (submission.model, submission.rows);
        let mut effects = Effects::default();
        let mut services = self.services();
        let now = self.clock.now();
        let is_stopping = services.is_stopping;
        let serves = |service: &&mut Service| service.serves(model) && !is_stopping;
        let service = services.current.iter_mut().find(serves);
        let allowed = service.as_ref().and_then(|service| service.allowed(&submission));
        let deadline = allowed.map_or(Time::NEVER, |allowed| now + allowed);
        let call = Call::new(submission, now, deadline, reply);
        let service = match service {
            Some(service) if !service.is_full(model) => service,
            at_its_limit => {
                let error = match (at_its_limit.is_some(), is_stopping) {
                    (true, _) => InferError::Refused(Refusal::QueueFull),
                    (false, true) => InferError::Stopped,
                    (false, false) => InferError::NotServed,
                };
                drop(services);
                call.answer(Err(error));
                return call;
            }
        };
        service.arrive(Piece { call: call.clone(), rows: 0..rows }, now, &mut effects);
        let generation = service.generation;
        drop(services);
        self.run_brief(generation, &mut effects);
        self.perform(generation, effects);
        call
    }

    /// Runs brief batches on the calling thread, and what comes of them, up to a limit.
    fn run_brief(&self, generation: Generation, effects: &mut Effects) {
        for _ in 0..MOST_BRIEF {
            let Some(place) = effects.jobs.iter().position(|(_, job)| job.is_brief()) else {
                return;
            };
            let (station, job) = effects.jobs.swap_remove(place);
            let launch = job.launch;
            let ran = station.run_here(job);
            self.learn(generation, Message::Finished(launch, ran.is_as_launched), effects);
            ran.tell(&*self.observer);
            ran.answer();
        }
    }

    /// Tells a service what happened.
    pub(crate) fn tell(&self, generation: Generation, message: Message) {
        let mut effects = Effects::default();
        self.learn(generation, message, &mut effects);
        self.perform(generation, effects);
    }

    fn learn(&self, generation: Generation, message: Message, effects: &mut Effects) {
        let mut services = self.services();
        let has_ended = !matches!(message, Message::Woken);
        match services.of(generation) {
            Some(service) => service.tell(message, self.clock.now(), effects),
            None if matches!(message, Message::Finished(..)) => {
                services.draining -= 1;
                let now = self.clock.now();
                if services.draining == 0 {
                    services.current.iter_mut().for_each(|service| service.release(now));
                }
            }
            // What was prepared or planned for a service that is gone is of no use.
            None => {}
        }
        drop(services);
        if has_ended {
            self.ended.notify_all();
        }
    }

    /// A time has come that some service asked for.
    pub(crate) fn wake(&self) {
        let generations: Vec<Generation> = {
            let services = self.services();
            services
                .current
                .iter()
                .chain(&services.next)
                .map(|service| service.generation)
                .collect()
        };
        for generation in generations {
            self.tell(generation, Message::Woken);
        }
    }

    fn perform(&self, generation: Generation, effects: Effects) {
        let Effects { answers, jobs, preparations, discards, plans, mixes, .. } = effects;
        let Effects { forgotten, repartitioned, evicted, wakes, .. } = effects;
        for (station, job) in jobs {
            station.run(job);
        }
        if let Some(partitions) = repartitioned {
            self.observer.repartitioned(&partitions);
        }
        for (model, length) in evicted {
            self.observer.evicted(model, length);
        }
        for at in wakes {
            self.alarm.set(self.clock, at);
        }
        for preparation in preparations {
            self.preparer.prepare(generation, preparation);
        }
        for place in discards {
            self.preparer.discard(generation, place);
        }
        for plan in plans {
            self.plan(generation, plan);
        }
        for wanted in mixes {
            self.mixer.regulate(&self.itself, generation, wanted);
        }
        drop(forgotten);
        for (call, error) in answers {
            call.answer(Err(error));
        }
    }

    /// Solves a task beside what is served.
    fn plan(&self, generation: Generation, task: LayoutTask) {
        let shared = self.itself.clone();
        let solve = move || {
            // Whoever asked waits for an answer, whatever happens here.
            let found = catch_unwind(AssertUnwindSafe(|| task.solve()));
            if let Some(shared) = shared.upgrade() {
                shared.tell(generation, Message::Planned(found.ok().map(Box::new)));
            }
        };
        let solve = Arc::new(solve);
        let elsewhere = solve.clone();
        // Without a thread whoever asks does it, late as that makes him.
        if beside::spawn("weft-plan", move || elsewhere()).is_err() {
            solve();
        }
    }

    /// Whether a service is there, or will be.
    pub(crate) fn has(&self, generation: Generation) -> bool {
        self.services().of(generation).is_some()
    }

    /// Does some work on the device when nothing waits and nothing runs, for a service that is the current one; what comes
    /// meanwhile is launched afterwards. `None` where the work is not wanted any more, or the service is gone.
    pub(crate) fn in_idle_moment<T>(
        &self,
        generation: Generation,
        is_unwanted: impl Fn() -> bool,
        work: impl FnOnce() -> T,
    ) -> Option<T> {
        let is_over = |services: &Services| {
            let is_current = services.current.iter().any(|it| it.generation == generation);
            is_unwanted() || services.is_stopping || !is_current
        };
        let mut services = self.services();
        loop {
            if is_over(&services) {
                return None;
            }
            if services.is_idle() {
                break;
            }
            let waited = self.ended.wait_timeout(services, LONGEST_WAIT);
            services = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        services.is_paused = true;
        services.current.iter_mut().for_each(Service::hold);
        drop(services);
        let _resumption = Resumption(self);
        Some(work())
    }

    /// Lets go of mixes that are ready while all take more than they may. Those that are regulated end by themselves.
    pub(crate) fn let_go_of_mixes(&self) {
        let ready: Vec<Arc<ReadyMix>> =
            self.services().current.iter().flat_map(Service::ready_mixes).cloned().collect();
        ready.iter().for_each(|mix| self.let_go_if_too_large(mix));
    }

    pub(crate) fn let_go_if_too_large(&self, mix: &ReadyMix) {
        if let Some(no_room) = mix.let_go_if_too_large() {
            self.observer.regulated(&mix.models, &no_room.into());
            let (generation, id) = mix.id;
            self.tell(generation, Message::Regulated(id, Err(NoMix::NoRoom)));
        }
    }

    /// Makes services the current ones, once what they begin with is ready. What waits for those before moves to them; what
    /// those run ends first.
    pub(crate) fn change_to(&self, services_to_be: Vec<Service>) -> Result<(), DeviceError> {
        let mut begun = Vec::new();
        {
            let mut services = self.services();
            services.next = services_to_be;
            for next in &mut services.next {
                let mut effects = Effects::default();
                next.begin(self.clock.now(), &mut effects);
                begun.push((next.generation, effects));
            }
        }
        self.perform_all(begun);
        // Those before have begun in earnest only once nothing is held for them.
        let is_beginning = |services: &mut Services| {
            let has_failed = services.next.iter().any(|next| next.failure.is_some());
            let is_outstanding = services.next.iter().any(|next| next.outstanding > 0);
            !has_failed && (is_outstanding || services.draining > 0 || services.is_paused)
        };
        let waited = self.ended.wait_while(self.services(), is_beginning);
        let mut services = waited.unwrap_or_else(PoisonError::into_inner);
        let mut next = std::mem::take(&mut services.next);
        if let Some(failure) = next.iter_mut().find_map(|next| next.failure.take()) {
            return Err(failure);
        }
        let mut before = std::mem::replace(&mut services.current, next);
        services.draining += before.iter().map(|service| service.running).sum::<usize>();
        if services.draining > 0 {
            services.current.iter_mut().for_each(Service::hold);
        }
        let mut moved = Vec::new();
        let now = self.clock.now();
        for piece in before.iter_mut().flat_map(Service::take_waiting) {
            let model = piece.call.model;
            let mut effects = Effects::default();
            match services.current.iter_mut().find(|service| service.serves(model)) {
                Some(service) => {
                    service.arrive(piece, now, &mut effects);
                    moved.push((service.generation, effects));
                }
                None => {
                    effects.answers.push((piece.call, InferError::NotServed));
                    moved.push((Generation(0), effects));
                }
            }
        }
        drop(services);
        self.perform_all(moved);
        Ok(())
    }

    fn perform_all(&self, all: Vec<(Generation, Effects)>) {
        for (generation, effects) in all {
            self.perform(generation, effects);
        }
    }

    /// Takes in no more, and waits until all that was accepted has ended.
    pub(crate) fn stop(&self) {
        let mut services = self.services();
        services.is_stopping = true;
        let is_busy = |services: &mut Services| {
            services.draining > 0 || services.current.iter().any(|service| !service.is_idle())
        };
        let services = self.ended.wait_while(services, is_busy);
        drop(services.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Lets what was held run, however a piece of work ends.
struct Resumption<'a>(&'a Shared);

impl Drop for Resumption<'_> {
    fn drop(&mut self) {
        let mut services = self.0.services();
        services.is_paused = false;
        let now = self.0.clock.now();
        services.current.iter_mut().for_each(|service| service.release(now));
        drop(services);
        self.0.ended.notify_all();
    }
}
