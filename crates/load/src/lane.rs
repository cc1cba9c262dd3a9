//! One thread of the generator: its connections, and its part of the requests of a run.

use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::LocalSet;
use weft_simulator::Clients;

use crate::alarm::Alarm;
use crate::connection::{self, Connection};
use crate::error::LoadError;
use crate::generator::{Generator, Progress};
use crate::outcome::Outcome;
use crate::prepared::PreparedModel;
use crate::recorder::Recorder;
use crate::schedule::Due;
use crate::target::Target;

/// How long answers are waited for when no more requests are due.
const SETTLING: Duration = Duration::from_secs(10);
/// The same when somebody has ended the run.
const SETTLING_INTERRUPTED: Duration = Duration::from_secs(1);
/// How often a lane says how far it is.
const TOLD_EVERY: Duration = Duration::from_millis(200);

/// A thread's connections, and the runtime that they belong to.
pub(crate) struct Lane {
    /// There until the lane is dropped.
    runtime: Option<Runtime>,
    target: Arc<Target>,
    connections: Vec<Connection>,
    /// Those of its connections.
    slots: Range<usize>,
}

/// What a lane has to do in one run.
pub(crate) struct Part {
    pub(crate) models: Arc<[PreparedModel]>,
    /// By model; `None` for loads that wait for nobody.
    pub(crate) clients: Vec<Option<Clients>>,
    pub(crate) drawn: Vec<Due>,
    pub(crate) recorder: Recorder,
    /// The most requests that wait for a connection.
    pub(crate) max_waiting: usize,
}

/// What all lanes of a run are told, in this order.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) enum Signal {
    /// Connect, and wait for the others.
    Connect,
    /// The run begins at this instant.
    Start(Instant),
    /// Nothing more is due.
    Stop,
    /// Nothing is waited for any more.
    GiveUp,
}

/// How a lane is talked to while it runs.
pub(crate) struct Line {
    pub(crate) signal: watch::Receiver<Signal>,
    /// Told when all connections are open.
    pub(crate) is_ready: oneshot::Sender<()>,
    pub(crate) progress: Arc<Mutex<Progress>>,
}

impl Lane {
    pub(crate) fn new(target: Arc<Target>, slots: Range<usize>) -> Result<Self, LoadError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(LoadError::Timer)?;
        Ok(Self { runtime: Some(runtime), target, connections: Vec::new(), slots })
    }

    /// Does its part of a run, on the calling thread.
    pub(crate) fn run(&mut self, part: Part, line: Line) -> Result<Outcome, LoadError> {
        let runtime = self.runtime.as_ref().expect("the lane is not dropped");
        runtime.block_on(run(&self.target, &mut self.connections, self.slots.clone(), part, line))
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.connections.clear();
        // Whoever drops this may be inside another runtime, where waiting for this one's end is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn run(
    target: &Arc<Target>,
    connections: &mut Vec<Connection>,
    slots: Range<usize>,
    part: Part,
    mut line: Line,
) -> Result<Outcome, LoadError> {
    let mut alarm = Alarm::new().map_err(LoadError::Timer)?;
    tokio::select! {
        opened = connection::fill(target, connections, slots) => opened?,
        () = told(&mut line.signal, Signal::Stop) => {}
    }
    // Where nobody listens any more, the run is over before it has begun.
    let _ = line.is_ready.send(());
    let begun = line.signal.wait_for(|signal| *signal > Signal::Connect).await;
    let start = match begun.map(|signal| *signal) {
        Ok(Signal::Start(start)) => start,
        _ => Instant::now(),
    };
    let local = LocalSet::new();
    let busy_before = busy();
    let generator = Rc::new(Generator::new(part, std::mem::take(connections), start));
    let driven = drive(&generator, &mut alarm, line.signal, &line.progress);
    let is_interrupted = local.run_until(driven).await?;
    // Whatever is in flight now is given up, and its connections with it.
    drop(local);
    let elapsed = generator.progress().elapsed;
    let (mut outcome, idle) = generator.finish();
    *connections = idle;
    outcome.is_interrupted = is_interrupted;
    outcome.generator_load =
        busy().saturating_sub(busy_before).as_secs_f64() / elapsed.seconds().max(1e-9);
    Ok(outcome)
}

/// Runs until all is sent and answered; true where it was stopped before.
async fn drive(
    generator: &Rc<Generator>,
    alarm: &mut Alarm,
    mut signal: watch::Receiver<Signal>,
    progress: &Mutex<Progress>,
) -> Result<bool, LoadError> {
    let mut every = tokio::time::interval(TOLD_EVERY);
    let mut telling = std::pin::pin!(async {
        loop {
            every.tick().await;
            *progress.lock().expect("nobody panics while holding it") = generator.progress();
        }
    });
    let is_interrupted = tokio::select! {
        biased;
        paced = generator.pace(alarm) => paced.map(|()| false).map_err(LoadError::Timer)?,
        () = told(&mut signal, Signal::Stop) => true,
        () = &mut telling => false,
    };
    generator.stop();
    let (limit, last) = match is_interrupted {
        true => (SETTLING_INTERRUPTED, Signal::GiveUp),
        false => (SETTLING, Signal::Stop),
    };
    tokio::select! {
        () = generator.settle() => {}
        () = tokio::time::sleep(limit) => {}
        () = told(&mut signal, last) => {}
        () = telling => {}
    }
    Ok(is_interrupted)
}

/// Returns when this was told, or something after it, or when there is nobody left to tell.
async fn told(signal: &mut watch::Receiver<Signal>, what: Signal) {
    let _ = signal.wait_for(|signal| *signal >= what).await;
}

/// How long this thread has been running on a core.
fn busy() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
