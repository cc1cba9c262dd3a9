//! What the threads of an engine share: the services, under one lock that is held for as long as a decision takes.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use weft_device::DeviceError;
use weft_scheduler::{LayoutTask, Time};

use crate::alarm::Alarm;
use crate::call::{Call, Piece, Reply, Submission, lock};
use crate::clock::{Clock, span};
use crate::error::InferError;
use crate::observer::Observer;
use crate::preparing::Preparer;
use crate::service::{Effects, Generation, Message, Service};

pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) preparer: Preparer,
    pub(crate) alarm: Alarm,
    services: Mutex<Services>,
    /// Something has ended that somebody may wait for.
    ended: Condvar,
    itself: Weak<Shared>,
}

#[derive(Default)]
pub(crate) struct Services {
    pub(crate) current: Option<Service>,
    /// One that is being made ready to be the current.
    pub(crate) next: Option<Service>,
    /// Launches of services before the current that have not ended.
    draining: usize,
    is_stopping: bool,
}

impl Services {
    fn of(&mut self, generation: Generation) -> Option<&mut Service> {
        let services = self.current.iter_mut().chain(&mut self.next);
        services.into_iter().find(|service| service.generation == generation)
    }
}

impl Shared {
    pub(crate) fn new(observer: Arc<dyn Observer>, preparer: Preparer, alarm: Alarm) -> Arc<Self> {
        Arc::new_cyclic(|itself| Self {
            clock: Clock::new(),
            observer,
            preparer,
            alarm,
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
        let timeout = submission.timeout.map(span);
        let (model, rows) = (submission.model, submission.rows);
        let mut effects = Effects::default();
        let mut services = self.services();
        let now = self.clock.now();
        let is_stopping = services.is_stopping;
        let current = services.current.as_mut().filter(|_| !is_stopping);
        let objective = current.as_ref().and_then(|current| current.objective(model));
        let allowed = [objective.flatten(), timeout].into_iter().flatten().min();
        let deadline = allowed.map_or(Time::NEVER, |allowed| now + allowed);
        let call = Call::new(submission, now, deadline, reply);
        let generation = match current {
            Some(current) => {
                let piece = Piece { call: call.clone(), rows: 0..rows };
                current.arrive(piece, now, &mut effects);
                current.generation
            }
            None => {
                let error = if is_stopping { InferError::Stopped } else { InferError::NotServed };
                effects.answers.push((call.clone(), error));
                Generation(0)
            }
        };
        drop(services);
        self.perform(generation, effects);
        call
    }

    /// Tells a service what happened.
    pub(crate) fn tell(&self, generation: Generation, message: Message) {
        let mut effects = Effects::default();
        let mut services = self.services();
        let has_ended = !matches!(message, Message::Woken);
        match services.of(generation) {
            Some(service) => service.tell(message, self.clock.now(), &mut effects),
            None if matches!(message, Message::Finished(_)) => {
                services.draining -= 1;
                if services.draining == 0
                    && let Some(current) = &mut services.current
                {
                    current.release();
                }
            }
            // What was prepared or planned for a service that is gone is of no use.
            None => {}
        }
        drop(services);
        if has_ended {
            self.ended.notify_all();
        }
        self.perform(generation, effects);
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
        let Effects { answers, preparations, discards, plans, wakes } = effects;
        for at in wakes {
            self.alarm.set(self.clock, at);
        }
        for preparation in preparations {
            self.preparer.prepare(generation, preparation);
        }
        for units in discards {
            self.preparer.discard(generation, units);
        }
        for plan in plans {
            self.plan(generation, plan);
        }
        for (call, error) in answers {
            call.answer(Err(error));
        }
    }

    /// Solves a task beside what is served.
    fn plan(&self, generation: Generation, task: LayoutTask) {
        let shared = self.itself.clone();
        let solve = move || {
            let found = Box::new(task.solve());
            if let Some(shared) = shared.upgrade() {
                shared.tell(generation, Message::Planned(found));
            }
        };
        // Without a thread there is no plan, and the present partitions go on.
        if thread::Builder::new().name("weft-plan".into()).spawn(solve).is_err()
            && let Some(service) = self.services().of(generation)
        {
            service.outstanding -= 1;
        }
    }

    /// Makes a service the current one, once what it begins with is ready. What waits for the one before moves to it; what
    /// that one runs ends first.
    pub(crate) fn change_to(&self, service: Service) -> Result<(), DeviceError> {
        let generation = service.generation;
        let mut effects = Effects::default();
        {
            let mut services = self.services();
            let next = services.next.insert(service);
            next.begin(self.clock.now(), &mut effects);
        }
        self.perform(generation, effects);
        let is_beginning = |services: &mut Services| {
            services
                .next
                .as_ref()
                .is_some_and(|next| next.outstanding > 0 && next.failure.is_none())
        };
        let mut services = self
            .ended
            .wait_while(self.services(), is_beginning)
            .unwrap_or_else(PoisonError::into_inner);
        let Some(mut next) = services.next.take() else { return Ok(()) };
        if let Some(failure) = next.failure.take() {
            return Err(failure);
        }
        let mut effects = Effects::default();
        if let Some(mut before) = services.current.take() {
            services.draining += before.running;
            let now = self.clock.now();
            if services.draining > 0 {
                next.hold();
            }
            for piece in before.take_waiting() {
                next.arrive(piece, now, &mut effects);
            }
        }
        services.current = Some(next);
        drop(services);
        self.perform(generation, effects);
        Ok(())
    }

    /// Takes in no more, and waits until all that was accepted has ended.
    pub(crate) fn stop(&self) {
        let mut services = self.services();
        services.is_stopping = true;
        let is_busy = |services: &mut Services| {
            services.draining > 0 || services.current.as_ref().is_some_and(|it| !it.is_idle())
        };
        let services = self.ended.wait_while(services, is_busy);
        drop(services.unwrap_or_else(PoisonError::into_inner));
    }
}
