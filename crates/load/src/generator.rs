//! Sends each request at the instant it is due, whatever became of those before it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use weft_scheduler::{Span, Time};
use weft_simulator::Clients;

use crate::alarm::Alarm;
use crate::connection::Connection;
use crate::lane::Part;
use crate::outcome::Outcome;
use crate::prepared::{Fate, PreparedModel};
use crate::recorder::{Job, Recorder};
use crate::upcoming::Upcoming;

/// One lane's part of a run on its way. All of it is on one thread.
pub(crate) struct Generator {
    models: Arc<[PreparedModel]>,
    /// By model; `None` for loads that wait for nobody.
    clients: RefCell<Vec<Option<Clients>>>,
    start: Instant,
    /// When requests stop being due.
    end: Cell<Time>,
    upcoming: RefCell<Upcoming>,
    /// A client asks at an instant that may be before the one that is waited for.
    has_upcoming: Notify,
    idle: RefCell<Vec<Connection>>,
    waiting: RefCell<VecDeque<Job>>,
    /// Past so many that wait more are dropped, and counted as such. Clients, whose number is limited anyway, always wait.
    max_waiting: usize,
    in_flight: Cell<usize>,
    /// Nothing is in flight or waits any more.
    is_quiet: Notify,
    recorder: RefCell<Recorder>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Since its beginning.
    pub elapsed: Span,
    /// The whole of it, warm-up included.
    pub length: Span,
    /// Requests that were due and count.
    pub due: u64,
    /// Of these, those that were answered.
    pub answered: u64,
    /// Sent and not answered yet.
    pub in_flight: usize,
    /// Due, and not sent for want of a connection.
    pub waiting: usize,
}

impl Progress {
    /// That of several lanes together, which are at it side by side.
    pub(crate) fn of_all(lanes: &[Arc<Mutex<Progress>>]) -> Self {
        let mut all = Self::default();
        for lane in lanes {
            let lane = *lane.lock().expect("nobody panics while holding it");
            all.elapsed = all.elapsed.max(lane.elapsed);
            all.length = all.length.max(lane.length);
            all.due += lane.due;
            all.answered += lane.answered;
            all.in_flight += lane.in_flight;
            all.waiting += lane.waiting;
        }
        all
    }
}

impl Generator {
    /// A part of a run that begins at an instant.
    pub(crate) fn new(part: Part, connections: Vec<Connection>, start: Instant) -> Self {
        let Part { models, mut clients, drawn, recorder, max_waiting } = part;
        let mut upcoming = Upcoming::new(drawn);
        for (model, clients) in (0..).zip(&mut clients) {
            let first = clients.iter_mut().flat_map(Clients::begin);
            first.for_each(|due| upcoming.push_client(model, due));
        }
        let outcome = recorder.so_far();
        let end = Time::after_start(outcome.warm_up + outcome.length);
        Self {
            models,
            clients: RefCell::new(clients),
            start,
            end: Cell::new(end),
            upcoming: RefCell::new(upcoming),
            has_upcoming: Notify::new(),
            idle: RefCell::new(connections),
            waiting: RefCell::default(),
            max_waiting,
            in_flight: Cell::new(0),
            is_quiet: Notify::new(),
            recorder: RefCell::new(recorder),
        }
    }

    fn now(&self) -> Time {
        Time::after_start(Span::from_nanos(self.start.elapsed().as_nanos() as u64))
    }

    /// Has every request sent when it is due, until the run's end.
    pub(crate) async fn pace(self: &Rc<Self>, alarm: &mut Alarm) -> io::Result<()> {
        loop {
            let now = self.now();
            while let Some(job) = self.pop(now) {
                self.submit(job);
            }
            let end = self.end.get();
            if now >= end {
                return Ok(());
            }
            let next = self.upcoming.borrow_mut().next_at().min(end);
            let wait = next.since(self.now());
            // Where more is due already, answers must still be read in between.
            if wait == Span::ZERO {
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.has_upcoming.notified() => {}
                woken = alarm.after(Duration::from_nanos(wait.nanos())) => woken?,
            }
        }
    }

    fn pop(&self, now: Time) -> Option<Job> {
        let job = self.upcoming.borrow_mut().pop(now)?;
        (job.due < self.end.get()).then_some(job)
    }

    /// A request is due: it goes out on a connection that is free, or waits for one.
    fn submit(self: &Rc<Self>, job: Job) {
        self.recorder.borrow_mut().due(&job);
        if let Some(connection) = self.idle.borrow_mut().pop() {
            self.in_flight.set(self.in_flight.get() + 1);
            tokio::task::spawn_local(self.clone().serve(connection, job));
            return;
        }
        let mut waiting = self.waiting.borrow_mut();
        match job.is_of_client || waiting.len() < self.max_waiting {
            true => waiting.push_back(Job { has_waited: true, ..job }),
            false => self.recorder.borrow_mut().dropped(&job),
        }
    }

    /// Sends a request and those that wait, one after the other.
    async fn serve(self: Rc<Self>, mut connection: Connection, mut job: Job) {
        loop {
            let model = &self.models[job.model as usize];
            let slot = connection.slot;
            let (place, message) = model.next(slot);
            self.recorder.borrow_mut().sent(&job, self.now());
            let reply = connection.ask(&message, model.output_place()).await;
            let now = self.now();
            let fate = model.judge(place, slot, reply);
            self.recorder.borrow_mut().ended(&job, &fate, now);
            let own = if job.is_of_client { self.ask_again(job.model, &fate, now) } else { None };
            let mut waiting = self.waiting.borrow_mut();
            if let (Some(own), false) = (own, waiting.is_empty()) {
                waiting.push_back(Job { has_waited: true, ..own });
            }
            match waiting.pop_front().or(own) {
                Some(next) => job = next,
                None => break,
            }
        }
        self.idle.borrow_mut().push(connection);
        self.in_flight.set(self.in_flight.get() - 1);
        if self.in_flight.get() == 0 {
            self.is_quiet.notify_one();
        }
    }

    /// The next request of a client: to be sent at once, or none if it is due later or after the end.
    fn ask_again(&self, model: u32, fate: &Fate, now: Time) -> Option<Job> {
        let mut all = self.clients.borrow_mut();
        let clients = all[model as usize].as_mut()?;
        let due = match fate {
            Fate::Answered => clients.after_answer(now),
            Fate::Refused(_) | Fate::Failed(_) => clients.after_refusal(now),
        };
        if due > now {
            self.upcoming.borrow_mut().push_client(model, due);
            self.has_upcoming.notify_one();
            return None;
        }
        let job = Job { due, model, is_of_client: true, has_waited: false };
        let is_before_end = due < self.end.get();
        if is_before_end {
            self.recorder.borrow_mut().due(&job);
        }
        is_before_end.then_some(job)
    }

    /// Ends the run at this instant.
    pub(crate) fn stop(&self) {
        self.end.set(self.end.get().min(self.now()));
    }

    /// Waits until all that is due has come to its end.
    pub(crate) async fn settle(&self) {
        while self.in_flight.get() > 0 {
            self.is_quiet.notified().await;
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        let recorder = self.recorder.borrow();
        let outcome = recorder.so_far();
        Progress {
            elapsed: self.now().since(Time::START),
            length: outcome.warm_up + outcome.length,
            due: outcome.models.iter().map(|model| model.due).sum(),
            answered: outcome.models.iter().map(|model| model.answered).sum(),
            in_flight: self.in_flight.get(),
            waiting: self.waiting.borrow().len(),
        }
    }

    /// What came of the run, and the connections that are not in use. What still waits is dropped.
    pub(crate) fn finish(&self) -> (Outcome, Vec<Connection>) {
        let mut recorder = self.recorder.borrow_mut();
        self.waiting.take().iter().for_each(|job| recorder.dropped(job));
        (recorder.finish(self.end.get()), self.idle.take())
    }
}
