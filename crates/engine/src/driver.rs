//! The driver: one thread that owns the policy, tells it what happens and carries out what it decides.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;

use weft_device::{Buckets, DeviceError, Partition};
use weft_scheduler::{
    Action, Event, LayoutTask, ModelId, PartitionId, Policy, Request, RequestId, Span, Time,
};

use crate::clock::Clock;
use crate::error::InferError;
use crate::message::{Call, Message, Ready};
use crate::preparing::{Preparation, Preparer};
use crate::worker::{Job, Worker};

/// A partition that has been prepared.
struct Prepared {
    worker: Worker,
    models: HashMap<ModelId, Arc<Buckets>>,
    /// Kept for as long as the worker may use it.
    _partition: Arc<dyn Partition>,
}

/// Everything that the driver's thread has.
pub(crate) struct Driver {
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) clock: Clock,
    /// By model: from arrival to deadline.
    pub(crate) slos: Vec<Option<Span>>,
    pub(crate) preparer: Preparer,
    /// The way back to itself, for those that work for it.
    pub(crate) sender: Sender<Message>,
    pub(crate) state: State,
}

/// What changes as it goes on.
#[derive(Default)]
pub(crate) struct State {
    waiting: HashMap<RequestId, Call>,
    partitions: HashMap<PartitionId, Prepared>,
    wakes: BinaryHeap<Reverse<Time>>,
    actions: Vec<Action>,
    next_request: u64,
    /// Launches that have not ended.
    running: usize,
    /// Preparations and plans that have not come back.
    outstanding: usize,
}

impl Driver {
    /// Plans and prepares what the policy begins with, says whether that worked, and then drives until it is told to stop
    /// and all that was accepted has ended.
    pub(crate) fn run(
        mut self,
        messages: &Receiver<Message>,
        begun: &Sender<Result<(), DeviceError>>,
    ) {
        let mut early = VecDeque::new();
        let outcome = self.begin(messages, &mut early);
        let has_begun = outcome.is_ok();
        // Who does not wait for it any more need not know.
        let _ = begun.send(outcome);
        let mut is_stopping = !has_begun;
        while !(is_stopping && self.is_idle() && early.is_empty()) {
            let message = match early.pop_front() {
                Some(message) => Some(message),
                None => self.next(messages),
            };
            match message {
                Some(Message::Stop) => is_stopping = true,
                Some(Message::Arrived { call, .. }) if is_stopping => {
                    (call.reply)(Err(InferError::Stopped));
                }
                message => self.handle(message),
            }
        }
    }

    /// Until nothing is outstanding. What comes meanwhile waits.
    fn begin(
        &mut self,
        messages: &Receiver<Message>,
        early: &mut VecDeque<Message>,
    ) -> Result<(), DeviceError> {
        self.react(Event::Started);
        while self.state.outstanding > 0 {
            match self.next(messages) {
                Some(Message::Prepared(_, Err(error))) => return Err(error),
                Some(message @ (Message::Arrived { .. } | Message::Stop)) => {
                    early.push_back(message);
                }
                message => self.handle(message),
            }
        }
        Ok(())
    }

    fn is_idle(&self) -> bool {
        self.state.waiting.is_empty() && self.state.running == 0
    }

    fn handle(&mut self, message: Option<Message>) {
        match message {
            None => self.react(Event::Woken),
            Some(Message::Arrived { model, timeout, call }) => self.arrive(model, timeout, call),
            Some(Message::Finished(launch)) => {
                self.state.running -= 1;
                self.react(Event::Finished(launch));
            }
            Some(Message::Planned(found)) => {
                self.state.outstanding -= 1;
                self.react(Event::Planned(found));
            }
            Some(Message::Prepared(id, ready)) => {
                self.state.outstanding -= 1;
                match ready {
                    Ok(ready) => self.keep(id, ready),
                    Err(_) => self.react(Event::Unprepared(id)),
                }
            }
            Some(Message::Stop) => {}
        }
    }

    /// The next message; `None` where a time that was asked for comes first.
    fn next(&mut self, messages: &Receiver<Message>) -> Option<Message> {
        let Some(&Reverse(wake)) = self.state.wakes.peek() else {
            return Some(messages.recv().unwrap_or(Message::Stop));
        };
        match messages.recv_timeout(self.clock.until(wake)) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Disconnected) => Some(Message::Stop),
            Err(RecvTimeoutError::Timeout) => {
                self.state.wakes.pop();
                None
            }
        }
    }

    fn arrive(&mut self, model: ModelId, timeout: Option<Span>, call: Call) {
        let now = self.clock.now();
        let id = RequestId(self.state.next_request);
        self.state.next_request += 1;
        let slo = self.slos[model.index()];
        let allowed = [slo, timeout].into_iter().flatten().min();
        let deadline = allowed.map_or(Time::NEVER, |allowed| now + allowed);
        self.state.waiting.insert(id, call);
        self.react(Event::Arrived(Request { id, model, arrived: now, deadline }));
    }

    /// A partition has more models ready.
    fn keep(&mut self, id: PartitionId, ready: Ready) {
        if let Some(prepared) = self.state.partitions.get_mut(&id) {
            prepared.models.extend(ready.models);
        } else {
            let name = format!("weft-partition-{}", id.0);
            let Ok(worker) = Worker::start(name, self.sender.clone()) else {
                return self.react(Event::Unprepared(id));
            };
            let models = ready.models.into_iter().collect();
            let prepared = Prepared { worker, models, _partition: ready.partition };
            self.state.partitions.insert(id, prepared);
        }
        self.react(Event::Prepared(id));
    }

    fn react(&mut self, event: Event) {
        let mut actions = std::mem::take(&mut self.state.actions);
        self.policy.react(event, self.clock.now(), &mut actions);
        for action in actions.drain(..) {
            self.carry_out(action);
        }
        self.state.actions = actions;
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Prepare { partition, units, models } => {
                self.state.outstanding += 1;
                self.preparer.send(Preparation::Prepare { partition, units, models });
            }
            Action::Discard(partition) => {
                self.state.partitions.remove(&partition);
                self.preparer.send(Preparation::Discard(partition));
            }
            // Which partition owns its units is the policy's to keep; the device runs whatever is launched.
            Action::Activate(_) | Action::Deactivate(_) => {}
            Action::Launch { launch, partition, model, requests, .. } => {
                let calls: Vec<Call> =
                    requests.iter().filter_map(|id| self.state.waiting.remove(id)).collect();
                let prepared = &self.state.partitions[&partition];
                let executables = prepared.models[&model].clone();
                self.state.running += 1;
                prepared.worker.run(Job { launch, executables, calls });
            }
            Action::Refuse { request, why } => self.answer(request, InferError::Refused(why)),
            Action::Shed(request) => self.answer(request, InferError::Shed),
            Action::Plan(task) => self.plan(task),
            Action::WakeAt(at) => self.state.wakes.push(Reverse(at)),
        }
    }

    fn answer(&mut self, request: RequestId, error: InferError) {
        if let Some(call) = self.state.waiting.remove(&request) {
            (call.reply)(Err(error));
        }
    }

    /// Solves a task beside what is served.
    fn plan(&mut self, task: Box<LayoutTask>) {
        self.state.outstanding += 1;
        let sender = self.sender.clone();
        let solve = move || {
            let _ = sender.send(Message::Planned(Box::new(task.solve())));
        };
        // Without a thread there is no plan, and the present partitions go on.
        if thread::Builder::new().name("weft-plan".into()).spawn(solve).is_err() {
            self.state.outstanding -= 1;
        }
    }
}
