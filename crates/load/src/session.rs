//! A server and the models that are asked for, ready for any number of runs.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::task::LocalSet;
use weft_scheduler::Span;
use weft_simulator::{Clients, Load};

use crate::alarm::Alarm;
use crate::answer_check::AnswerCheck;
use crate::connection::{self, Connection};
use crate::error::LoadError;
use crate::generator::{Generator, Progress};
use crate::model_load::ModelLoad;
use crate::outcome::Outcome;
use crate::prepare;
use crate::prepared::PreparedModel;
use crate::recorder::Recorder;
use crate::schedule;
use crate::shared_memory::{MAX_SLOTS, Registration};
use crate::target::Target;
use crate::upcoming::Upcoming;

/// How long answers are waited for when no more requests are due.
const SETTLING: Duration = Duration::from_secs(10);
/// The same when somebody has ended the run.
const SETTLING_INTERRUPTED: Duration = Duration::from_secs(1);
/// How often it is told how far a run is.
const WATCHED_EVERY: Duration = Duration::from_secs(1);

/// How requests are made and sent, in all runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionOptions {
    /// The most connections; where all are busy, requests wait, and their latency counts on.
    pub connections: usize,
    /// What inputs are drawn from.
    pub seed: u64,
    /// How answers are checked.
    pub check: AnswerCheck,
    /// Tensors are in memory that is shared with the server, which is on this machine, and messages say where.
    pub shared_memory: bool,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunOptions {
    /// How long requests come that count.
    pub length: Span,
    /// How long requests come before, which do not.
    pub warm_up: Span,
    /// What arrivals are drawn from.
    pub seed: u64,
    /// What rates are multiplied with; clients are as many as they are.
    pub factor: f64,
}

/// A server, the requests for it, and connections to it.
pub struct Session {
    target: Arc<Target>,
    models: Vec<ModelLoad>,
    prepared: Arc<[PreparedModel]>,
    connections: Vec<Connection>,
    /// How many requests may be under way at a time.
    slots: usize,
    /// Memory that requests name, which the server forgets with the session.
    _registration: Option<Registration>,
}

impl Session {
    /// Asks the server about the models, makes their requests, and tries one of each: what a server cannot do is found
    /// here, and not counted as load.
    pub async fn open(
        target: Target,
        models: Vec<ModelLoad>,
        options: SessionOptions,
    ) -> Result<Self, LoadError> {
        let target = Arc::new(target);
        let slots = connection::requests_at_a_time(target.protocol, options.connections);
        let slots = if options.shared_memory { slots.min(MAX_SLOTS) } else { slots };
        let prepared = prepare::prepare(&target, &models, &options, slots).await?;
        Ok(Self {
            target,
            models,
            prepared: prepared.models.into(),
            connections: Vec::new(),
            slots,
            _registration: prepared.registration,
        })
    }

    /// Sends requests at the instants they are due. `watch` is told once a second how far it is; when `stop` returns, the
    /// run ends there.
    pub async fn run(
        &mut self,
        run: &RunOptions,
        watch: &mut dyn FnMut(&Progress),
        stop: &mut impl AsyncFnMut(),
    ) -> Result<Outcome, LoadError> {
        let loads: Vec<Load> =
            self.models.iter().map(|model| scaled(&model.load, run.factor)).collect();
        let drawn = schedule::draw(&loads, run.warm_up + run.length, run.seed)?;
        let clients = (0..).zip(&loads).map(|(model, load)| match *load {
            Load::ClosedLoop { clients, think } => {
                Some(Clients::new(clients, think, run.seed, model))
            }
            _ => None,
        });
        let mut alarm = Alarm::new().map_err(LoadError::Timer)?;
        connection::fill(&self.target, &mut self.connections, 0..self.slots).await?;
        let local = LocalSet::new();
        let busy_before = busy();
        let generator = Rc::new(Generator::new(
            self.prepared.clone(),
            clients.collect(),
            Upcoming::new(drawn),
            std::mem::take(&mut self.connections),
            Recorder::new(&self.models, run.warm_up, run.length),
        ));
        let is_interrupted = local.run_until(drive(&generator, &mut alarm, watch, stop)).await?;
        // Whatever is in flight now is given up, and its connections with it.
        drop(local);
        let elapsed = generator.progress().elapsed;
        let (mut outcome, connections) = generator.finish();
        self.connections = connections;
        outcome.is_interrupted = is_interrupted;
        outcome.generator_load =
            busy().saturating_sub(busy_before).as_secs_f64() / elapsed.seconds().max(1e-9);
        Ok(outcome)
    }
}

/// Runs until all is sent and answered; true where it was stopped before.
async fn drive(
    generator: &Rc<Generator>,
    alarm: &mut Alarm,
    watch: &mut dyn FnMut(&Progress),
    stop: &mut impl AsyncFnMut(),
) -> Result<bool, LoadError> {
    let mut every = tokio::time::interval(WATCHED_EVERY);
    let mut watching = std::pin::pin!(async {
        loop {
            every.tick().await;
            watch(&generator.progress());
        }
    });
    let is_interrupted = tokio::select! {
        biased;
        paced = generator.pace(alarm) => paced.map(|()| false).map_err(LoadError::Timer)?,
        () = stop() => true,
        () = &mut watching => false,
    };
    generator.stop();
    let limit = if is_interrupted { SETTLING_INTERRUPTED } else { SETTLING };
    tokio::select! {
        () = generator.settle() => {}
        () = tokio::time::sleep(limit) => {}
        () = stop() => {}
        () = watching => {}
    }
    Ok(is_interrupted)
}

fn scaled(load: &Load, factor: f64) -> Load {
    match load {
        Load::ClosedLoop { .. } => load.clone(),
        _ => load.scaled(factor),
    }
}

/// How long this thread has been running on a core.
fn busy() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
